/** ShareGroupHeartbeat (KIP-932): membership of a share group. Version 0 was early access and is gone. */
import { arr, defineApi, int16, int32, narr, nstr, nstruct, str, uuid } from "../schema.ts"

export const shareGroupHeartbeat = defineApi({
  key: 76,
  name: "ShareGroupHeartbeat",
  versions: "1",
  flexible: 0,
  request: {
    groupId: str("0+"),
    memberId: str("0+"),
    memberEpoch: int32("0+"),
    rackId: nstr("0+", "0+", { default: null }),
    subscribedTopicNames: narr("0+", "0+", str("0+"), { default: null })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+", { default: null }),
    memberId: nstr("0+", "0+", { default: null }),
    memberEpoch: int32("0+"),
    heartbeatIntervalMs: int32("0+"),
    assignment: nstruct("0+", "0+", {
      topicPartitions: arr("0+", { topicId: uuid("0+"), partitions: arr("0+", int32("0+")) })
    }, { default: null })
  }
})
