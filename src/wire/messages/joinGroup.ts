/**
 * JoinGroup, of classic groups (v4: the member id comes first, KIP-394; v5: static members, KIP-345; v8: reasons,
 * KIP-800; v9: KIP-814).
 */
import { arr, bool, bytes, defineApi, int16, int32, nstr, str } from "../schema.ts"

export const joinGroup = defineApi({
  key: 11,
  name: "JoinGroup",
  versions: "0-9",
  flexible: 6,
  request: {
    groupId: str("0+"),
    sessionTimeoutMs: int32("0+"),
    rebalanceTimeoutMs: int32("1+", { default: -1, ignorable: true }),
    memberId: str("0+"),
    groupInstanceId: nstr("5+", "5+", { default: null }),
    protocolType: str("0+"),
    protocols: arr("0+", { name: str("0+"), metadata: bytes("0+") }),
    reason: nstr("8+", "8+", { default: null, ignorable: true })
  },
  response: {
    throttleTimeMs: int32("2+", { default: 0, ignorable: true }),
    errorCode: int16("0+"),
    generationId: int32("0+", { default: -1 }),
    protocolType: nstr("7+", "7+", { default: null, ignorable: true }),
    protocolName: nstr("0+", "7+"),
    leader: str("0+"),
    skipAssignment: bool("9+", { default: false }),
    memberId: str("0+"),
    members: arr("0+", {
      memberId: str("0+"),
      groupInstanceId: nstr("5+", "5+", { default: null, ignorable: true }),
      metadata: bytes("0+")
    })
  }
})
