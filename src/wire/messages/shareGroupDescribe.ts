/** ShareGroupDescribe (KIP-932). Version 0 was early access and is gone. */
import { arr, bool, defineApi, int16, int32, nstr, str, struct, uuid } from "../schema.ts"

export const shareGroupDescribe = defineApi({
  key: 77,
  name: "ShareGroupDescribe",
  versions: "1",
  flexible: 0,
  request: { groupIds: arr("0+", str("0+")), includeAuthorizedOperations: bool("0+") },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    groups: arr("0+", {
      errorCode: int16("0+"),
      errorMessage: nstr("0+", "0+", { default: null }),
      groupId: str("0+"),
      groupState: str("0+"),
      groupEpoch: int32("0+"),
      assignmentEpoch: int32("0+"),
      assignorName: str("0+"),
      members: arr("0+", {
        memberId: str("0+"),
        rackId: nstr("0+", "0+", { default: null }),
        memberEpoch: int32("0+"),
        clientId: str("0+"),
        clientHost: str("0+"),
        subscribedTopicNames: arr("0+", str("0+")),
        assignment: struct("0+", {
          topicPartitions: arr("0+", {
            topicId: uuid("0+"),
            topicName: str("0+"),
            partitions: arr("0+", int32("0+"))
          })
        })
      }),
      authorizedOperations: int32("0+", { default: -2147483648 })
    })
  }
})
