/**
 * DescribeGroups, of classic groups (v3: authorized operations, KIP-430; v4: static members, KIP-345; v6:
 * GROUP_ID_NOT_FOUND and a message, KIP-1043).
 *
 * Gotcha: below version 6 a group that does not exist is answered as Dead without an error.
 */
import { arr, bool, bytes, defineApi, int16, int32, nstr, str } from "../schema.ts"

export const describeGroups = defineApi({
  key: 15,
  name: "DescribeGroups",
  versions: "0-6",
  flexible: 5,
  request: {
    groups: arr("0+", str("0+")),
    includeAuthorizedOperations: bool("3+", { default: false })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    groups: arr("0+", {
      errorCode: int16("0+"),
      errorMessage: nstr("6+", "6+", { default: null }),
      groupId: str("0+"),
      groupState: str("0+"),
      protocolType: str("0+"),
      protocolData: str("0+"),
      members: arr("0+", {
        memberId: str("0+"),
        groupInstanceId: nstr("4+", "4+", { default: null, ignorable: true }),
        clientId: str("0+"),
        clientHost: str("0+"),
        memberMetadata: bytes("0+"),
        memberAssignment: bytes("0+")
      }),
      authorizedOperations: int32("3+", { default: -2147483648 })
    })
  }
})
