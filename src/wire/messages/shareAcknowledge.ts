/** ShareAcknowledge (KIP-932; version 2: KIP-1222 renewal). Version 0 was early access and is gone. */
import { arr, bool, defineApi, int16, int32, int64, int8, nstr, str, struct, uuid } from "../schema.ts"

export const shareAcknowledge = defineApi({
  key: 79,
  name: "ShareAcknowledge",
  versions: "1-2",
  flexible: 0,
  request: {
    groupId: nstr("0+", "0+", { default: null }),
    memberId: nstr("0+", "0+"),
    shareSessionEpoch: int32("0+"),
    isRenewAck: bool("2+", { default: false }),
    topics: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        acknowledgementBatches: arr("0+", {
          firstOffset: int64("0+"),
          lastOffset: int64("0+"),
          acknowledgeTypes: arr("0+", int8("0+"))
        })
      })
    })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+", { default: null }),
    acquisitionLockTimeoutMs: int32("2+", { default: 0, ignorable: true }),
    responses: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        errorMessage: nstr("0+", "0+", { default: null }),
        currentLeader: struct("0+", { leaderId: int32("0+"), leaderEpoch: int32("0+") })
      })
    }),
    nodeEndpoints: arr("0+", {
      nodeId: int32("0+"),
      host: str("0+"),
      port: int32("0+"),
      rack: nstr("0+", "0+", { default: null })
    })
  }
})
