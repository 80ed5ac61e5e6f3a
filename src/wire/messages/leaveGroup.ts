/** LeaveGroup, of classic groups (v3: several members at once, KIP-345; v5: reasons, KIP-800). */
import { arr, defineApi, int16, int32, nstr, str } from "../schema.ts"

export const leaveGroup = defineApi({
  key: 13,
  name: "LeaveGroup",
  versions: "0-5",
  flexible: 4,
  request: {
    groupId: str("0+"),
    memberId: str("0-2", { default: "" }),
    members: arr("3+", {
      memberId: str("3+"),
      groupInstanceId: nstr("3+", "3+", { default: null }),
      reason: nstr("5+", "5+", { default: null, ignorable: true })
    }, { default: [] })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    errorCode: int16("0+"),
    members: arr("3+", {
      memberId: str("3+"),
      groupInstanceId: nstr("3+", "3+"),
      errorCode: int16("3+")
    }, { default: [] })
  }
})
