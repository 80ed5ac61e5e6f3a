/** DeleteRecords (KIP-107). Offset -1 means the high watermark. */
import { arr, defineApi, int16, int32, int64, str } from "../schema.ts"

export const deleteRecords = defineApi({
  key: 21,
  name: "DeleteRecords",
  versions: "0-2",
  flexible: 2,
  request: {
    topics: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", { partitionIndex: int32("0+"), offset: int64("0+") })
    }),
    timeoutMs: int32("0+")
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    topics: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        lowWatermark: int64("0+"),
        errorCode: int16("0+")
      })
    })
  }
})
