/** DeleteShareGroupOffsets (KIP-932): forgets topics of an empty share group. */
import { arr, defineApi, int16, int32, nstr, str, uuid } from "../schema.ts"

export const deleteShareGroupOffsets = defineApi({
  key: 92,
  name: "DeleteShareGroupOffsets",
  versions: "0",
  flexible: 0,
  request: { groupId: str("0+"), topics: arr("0+", { topicName: str("0+") }) },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+", { default: null }),
    responses: arr("0+", {
      topicName: str("0+"),
      topicId: uuid("0+"),
      errorCode: int16("0+"),
      errorMessage: nstr("0+", "0+", { default: null })
    })
  }
})
