/** SyncGroup, of classic groups (v3: static members, KIP-345; v5: protocol type and name, KIP-559). */
import { arr, bytes, defineApi, int16, int32, nstr, str } from "../schema.ts"

export const syncGroup = defineApi({
  key: 14,
  name: "SyncGroup",
  versions: "0-5",
  flexible: 4,
  request: {
    groupId: str("0+"),
    generationId: int32("0+"),
    memberId: str("0+"),
    groupInstanceId: nstr("3+", "3+", { default: null }),
    protocolType: nstr("5+", "5+", { default: null, ignorable: true }),
    protocolName: nstr("5+", "5+", { default: null, ignorable: true }),
    assignments: arr("0+", { memberId: str("0+"), assignment: bytes("0+") })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    errorCode: int16("0+"),
    protocolType: nstr("5+", "5+", { default: null, ignorable: true }),
    protocolName: nstr("5+", "5+", { default: null, ignorable: true }),
    assignment: bytes("0+")
  }
})
