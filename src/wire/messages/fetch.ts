/**
 * Fetch (v7: sessions, KIP-227; v9: leader epochs, KIP-320; v11: rack, KIP-392; v12: diverging epochs; v13: topic
 * ids, KIP-516; v16: new leaders in the answer, KIP-951).
 *
 * Starts at 4, the first version with record batches of magic 2 and aborted transactions. Ends at 17: version 18
 * (KIP-1166) differs for followers only, with a default (2^63 - 1) that an int64 here cannot hold.
 * `records` is what the broker read from its log, possibly cut within the last batch, and is not copied.
 */
import {
  arr,
  defineApi,
  int16,
  int32,
  int64,
  int8,
  narr,
  nstr,
  records,
  str,
  struct,
  uuid,
  ZERO_UUID
} from "../schema.ts"

export const fetch = defineApi({
  key: 1,
  name: "Fetch",
  versions: "4-17",
  flexible: 12,
  request: {
    clusterId: nstr("12+", "12+", { default: null, tag: 0, tagged: "12+", ignorable: true }),
    replicaId: int32("0-14", { default: -1 }),
    replicaState: struct("15+", {
      replicaId: int32("15+", { default: -1 }),
      replicaEpoch: int64("15+", { default: -1 })
    }, { optional: true, tag: 1, tagged: "15+" }),
    maxWaitMs: int32("0+"),
    minBytes: int32("0+"),
    maxBytes: int32("3+", { default: 0x7fffffff }),
    isolationLevel: int8("4+", { default: 0 }),
    sessionId: int32("7+", { default: 0, ignorable: true }),
    sessionEpoch: int32("7+", { default: -1, ignorable: true }),
    topics: arr("0+", {
      topic: str("0-12", { default: "", ignorable: true }),
      topicId: uuid("13+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("0+", {
        partition: int32("0+"),
        currentLeaderEpoch: int32("9+", { default: -1, ignorable: true }),
        fetchOffset: int64("0+"),
        lastFetchedEpoch: int32("12+", { default: -1 }),
        logStartOffset: int64("5+", { default: -1, ignorable: true }),
        partitionMaxBytes: int32("0+"),
        replicaDirectoryId: uuid("17+", { default: ZERO_UUID, tag: 0, tagged: "17+", ignorable: true })
      })
    }),
    forgottenTopicsData: arr("7+", {
      topic: str("7-12", { default: "", ignorable: true }),
      topicId: uuid("13+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("7+", int32("7+"))
    }, { default: [] }),
    rackId: str("11+", { default: "", ignorable: true })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0 }),
    errorCode: int16("7+", { default: 0, ignorable: true }),
    sessionId: int32("7+", { default: 0 }),
    responses: arr("0+", {
      topic: str("0-12", { default: "", ignorable: true }),
      topicId: uuid("13+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        highWatermark: int64("0+"),
        lastStableOffset: int64("4+", { default: -1 }),
        logStartOffset: int64("5+", { default: -1, ignorable: true }),
        divergingEpoch: struct("12+", {
          epoch: int32("12+", { default: -1 }),
          endOffset: int64("12+", { default: -1 })
        }, { optional: true, tag: 0, tagged: "12+" }),
        currentLeader: struct("12+", {
          leaderId: int32("12+", { default: -1 }),
          leaderEpoch: int32("12+", { default: -1 })
        }, { optional: true, tag: 1, tagged: "12+" }),
        snapshotId: struct("12+", {
          endOffset: int64("0+", { default: -1 }),
          epoch: int32("0+", { default: -1 })
        }, { optional: true, tag: 2, tagged: "12+" }),
        abortedTransactions: narr("4+", "4+", { producerId: int64("4+"), firstOffset: int64("4+") }),
        preferredReadReplica: int32("11+", { default: -1 }),
        records: records("0+", "0+")
      })
    }),
    nodeEndpoints: arr("16+", {
      nodeId: int32("16+"),
      host: str("16+"),
      port: int32("16+"),
      rack: nstr("16+", "16+", { default: null })
    }, { default: [], tag: 0, tagged: "16+" })
  }
})
