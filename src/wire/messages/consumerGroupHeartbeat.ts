/** ConsumerGroupHeartbeat (KIP-848; v1: regular expressions, and member ids made by the member, KIP-1082). */
import { arr, defineApi, int16, int32, narr, nstr, nstruct, str, uuid } from "../schema.ts"

export const consumerGroupHeartbeat = defineApi({
  key: 68,
  name: "ConsumerGroupHeartbeat",
  versions: "0-1",
  flexible: 0,
  request: {
    groupId: str("0+"),
    memberId: str("0+"),
    memberEpoch: int32("0+"),
    instanceId: nstr("0+", "0+", { default: null }),
    rackId: nstr("0+", "0+", { default: null }),
    rebalanceTimeoutMs: int32("0+", { default: -1 }),
    subscribedTopicNames: narr("0+", "0+", str("0+"), { default: null }),
    subscribedTopicRegex: nstr("1+", "1+", { default: null }),
    serverAssignor: nstr("0+", "0+", { default: null }),
    topicPartitions: narr("0+", "0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", int32("0+"))
    }, { default: null })
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
