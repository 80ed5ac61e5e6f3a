/** ShareFetch (KIP-932; v2: KIP-1206 acquire modes, KIP-1222 renewal). Version 0 was early access and is gone. */
import { arr, bool, defineApi, int16, int32, int64, int8, nstr, records, str, struct, uuid } from "../schema.ts"

export const shareFetch = defineApi({
  key: 78,
  name: "ShareFetch",
  versions: "1-2",
  flexible: 0,
  request: {
    groupId: nstr("0+", "0+", { default: null }),
    memberId: nstr("0+", "0+"),
    shareSessionEpoch: int32("0+"),
    maxWaitMs: int32("0+"),
    minBytes: int32("0+"),
    maxBytes: int32("0+", { default: 0x7fffffff }),
    maxRecords: int32("1+"),
    batchSize: int32("1+"),
    shareAcquireMode: int8("2+", { default: 0, ignorable: true }),
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
    }),
    forgottenTopicsData: arr("0+", { topicId: uuid("0+"), partitions: arr("0+", int32("0+")) })
  },
  response: {
    throttleTimeMs: int32("0+"),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+", { default: null }),
    acquisitionLockTimeoutMs: int32("1+"),
    responses: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        errorMessage: nstr("0+", "0+", { default: null }),
        acknowledgeErrorCode: int16("0+"),
        acknowledgeErrorMessage: nstr("0+", "0+", { default: null }),
        currentLeader: struct("0+", { leaderId: int32("0+"), leaderEpoch: int32("0+") }),
        records: records("0+", "0"),
        acquiredRecords: arr("0+", { firstOffset: int64("0+"), lastOffset: int64("0+"), deliveryCount: int16("0+") })
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
