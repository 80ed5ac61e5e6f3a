/** DeleteGroups (KIP-229; v3: the reason in words), of groups of every type. */
import { arr, defineApi, int16, int32, nstr, str } from "../schema.ts"

export const deleteGroups = defineApi({
  key: 42,
  name: "DeleteGroups",
  versions: "0-3",
  flexible: 2,
  request: { groupsNames: arr("0+", str("0+")) },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    results: arr("0+", {
      groupId: str("0+"),
      errorCode: int16("0+"),
      errorMessage: nstr("3+", "3+", { default: null, ignorable: true })
    })
  }
})
