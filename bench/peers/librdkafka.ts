/** The version of the client that the record-by-record peer, the probes and the checks are made of. */
import RdKafka from "@confluentinc/kafka-javascript"

export const librdkafka: string = RdKafka.librdkafkaVersion
