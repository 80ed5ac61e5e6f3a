/** DescribeTransactions (KIP-664). */
import { arr, defineApi, int16, int32, int64, str } from "../schema.ts"

export const describeTransactions = defineApi({
  key: 65,
  name: "DescribeTransactions",
  versions: "0",
  flexible: 0,
  request: { transactionalIds: arr("0+", str("0+")) },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    transactionStates: arr("0+", {
      errorCode: int16("0+"),
      transactionalId: str("0+"),
      transactionState: str("0+"),
      transactionTimeoutMs: int32("0+"),
      transactionStartTimeMs: int64("0+"),
      producerId: int64("0+"),
      producerEpoch: int16("0+"),
      topics: arr("0+", { topic: str("0+"), partitions: arr("0+", int32("0+")) })
    })
  }
})
