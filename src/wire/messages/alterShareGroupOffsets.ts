/** AlterShareGroupOffsets (KIP-932): moves the start of an empty share group. */
import { arr, defineApi, int16, int32, int64, nstr, str, uuid } from "../schema.ts"

export const alterShareGroupOffsets = defineApi({
  key: 91,
  name: "AlterShareGroupOffsets",
  versions: "0",
  flexible: 0,
  request: {
    groupId: str("0+"),
    topics: arr("0+", {
      topicName: str("0+"),
      partitions: arr("0+", { partitionIndex: int32("0+"), startOffset: int64("0+") })
    })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+", { default: null }),
    responses: arr("0+", {
      topicName: str("0+"),
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        errorMessage: nstr("0+", "0+", { default: null })
      })
    })
  }
})
