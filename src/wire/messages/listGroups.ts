/** ListGroups (v4: states, KIP-518; v5: types, KIP-848). The type tells a share group from a consumer group. */
import { arr, defineApi, int16, int32, str } from "../schema.ts"

export const listGroups = defineApi({
  key: 16,
  name: "ListGroups",
  versions: "0-5",
  flexible: 3,
  request: {
    statesFilter: arr("4+", str("4+"), { default: [] }),
    typesFilter: arr("5+", str("5+"), { default: [] })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    errorCode: int16("0+"),
    groups: arr("0+", {
      groupId: str("0+"),
      protocolType: str("0+"),
      groupState: str("4+", { default: "", ignorable: true }),
      groupType: str("5+", { default: "", ignorable: true })
    })
  }
})
