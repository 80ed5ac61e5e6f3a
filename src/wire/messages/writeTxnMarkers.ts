/**
 * WriteTxnMarkers: a transaction coordinator, or an operator, ends a transaction on a partition's leader (KIP-98; used
 * by hand for hanging transactions, KIP-664; v2: KIP-1228). Starts at 1, as Kafka 4 does.
 */
import { arr, bool, defineApi, int16, int32, int64, int8, str } from "../schema.ts"

export const writeTxnMarkers = defineApi({
  key: 27,
  name: "WriteTxnMarkers",
  versions: "1-2",
  flexible: 1,
  request: {
    markers: arr("0+", {
      producerId: int64("0+"),
      producerEpoch: int16("0+"),
      transactionResult: bool("0+"),
      topics: arr("0+", { name: str("0+"), partitionIndexes: arr("0+", int32("0+")) }),
      coordinatorEpoch: int32("0+"),
      transactionVersion: int8("2+", { default: 0, ignorable: true })
    })
  },
  response: {
    markers: arr("0+", {
      producerId: int64("0+"),
      topics: arr("0+", {
        name: str("0+"),
        partitions: arr("0+", { partitionIndex: int32("0+"), errorCode: int16("0+") })
      })
    })
  }
})
