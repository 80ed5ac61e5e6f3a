/**
 * CreateTopics (v4: the broker's defaults as -1, KIP-464; v5: settings in the answer, KIP-525; v7: topic id, KIP-516).
 *
 * Starts at 2, as Kafka 4 does; every broker from 1.0 on has it.
 */
import { arr, bool, defineApi, int16, int32, int8, narr, nstr, str, uuid, ZERO_UUID } from "../schema.ts"

export const createTopics = defineApi({
  key: 19,
  name: "CreateTopics",
  versions: "2-7",
  flexible: 5,
  request: {
    topics: arr("0+", {
      name: str("0+"),
      numPartitions: int32("0+"),
      replicationFactor: int16("0+"),
      assignments: arr("0+", { partitionIndex: int32("0+"), brokerIds: arr("0+", int32("0+")) }),
      configs: arr("0+", { name: str("0+"), value: nstr("0+", "0+") })
    }),
    timeoutMs: int32("0+", { default: 60000 }),
    validateOnly: bool("1+", { default: false })
  },
  response: {
    throttleTimeMs: int32("2+", { default: 0 }),
    topics: arr("0+", {
      name: str("0+"),
      topicId: uuid("7+", { default: ZERO_UUID, ignorable: true }),
      errorCode: int16("0+"),
      errorMessage: nstr("1+", "0+"),
      topicConfigErrorCode: int16("5+", { default: 0, tag: 0, tagged: "5+", ignorable: true }),
      numPartitions: int32("5+", { default: -1, ignorable: true }),
      replicationFactor: int16("5+", { default: -1, ignorable: true }),
      configs: narr("5+", "5+", {
        name: str("5+"),
        value: nstr("5+", "5+"),
        readOnly: bool("5+"),
        configSource: int8("5+", { default: -1 }),
        isSensitive: bool("5+")
      }, { default: [], ignorable: true })
    })
  }
})
