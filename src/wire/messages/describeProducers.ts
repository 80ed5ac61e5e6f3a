/** DescribeProducers (KIP-664): who writes to a partition, and who has a transaction open there. */
import { arr, defineApi, int16, int32, int64, nstr, str } from "../schema.ts"

export const describeProducers = defineApi({
  key: 61,
  name: "DescribeProducers",
  versions: "0",
  flexible: 0,
  request: { topics: arr("0+", { name: str("0+"), partitionIndexes: arr("0+", int32("0+")) }) },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    topics: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        errorMessage: nstr("0+", "0+", { default: null }),
        activeProducers: arr("0+", {
          producerId: int64("0+"),
          producerEpoch: int32("0+"),
          lastSequence: int32("0+", { default: -1 }),
          // Of a record: whatever its writer has put there.
          lastTimestamp: int64("0+", { default: -1, rounded: true }),
          coordinatorEpoch: int32("0+"),
          currentTxnStartOffset: int64("0+", { default: -1 })
        })
      })
    })
  }
})
