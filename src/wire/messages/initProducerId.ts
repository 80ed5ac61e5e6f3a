/**
 * InitProducerId (v3: KIP-360 resume after an epoch error; v4: PRODUCER_FENCED, KIP-588; v5: KIP-890).
 *
 * Ends at 5: version 6 (KIP-939, two-phase commit) is marked unstable in Kafka 4.4 and brokers do not offer it.
 */
import { defineApi, int16, int32, int64, nstr } from "../schema.ts"

export const initProducerId = defineApi({
  key: 22,
  name: "InitProducerId",
  versions: "0-5",
  flexible: 2,
  request: {
    transactionalId: nstr("0+", "0+"),
    transactionTimeoutMs: int32("0+"),
    producerId: int64("3+", { default: -1 }),
    producerEpoch: int16("3+", { default: -1 })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    producerId: int64("0+", { default: -1 }),
    producerEpoch: int16("0+")
  }
})
