/**
 * AddPartitionsToTxn (KIP-98; v2: PRODUCER_FENCED, KIP-588).
 *
 * Ends at 3: from version 4 on (KIP-890) it is spoken between brokers only, with other fields. Clients need it only
 * where Produce 12 does not add the partition by itself (transaction.version below 2).
 */
import { arr, defineApi, int16, int32, int64, str } from "../schema.ts"

export const addPartitionsToTxn = defineApi({
  key: 24,
  name: "AddPartitionsToTxn",
  versions: "0-3",
  flexible: 3,
  request: {
    v3AndBelowTransactionalId: str("0-3"),
    v3AndBelowProducerId: int64("0-3"),
    v3AndBelowProducerEpoch: int16("0-3"),
    v3AndBelowTopics: arr("0-3", { name: str("0+"), partitions: arr("0+", int32("0+")) })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    resultsByTopicV3AndBelow: arr("0-3", {
      name: str("0+"),
      resultsByPartition: arr("0+", { partitionIndex: int32("0+"), partitionErrorCode: int16("0+") })
    })
  }
})
