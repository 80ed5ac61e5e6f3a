/**
 * OffsetFetch (v2: all topics; v7: only stable offsets, KIP-447; v8: several groups, KIP-709; v9: KIP-848; v10: topic
 * ids).
 *
 * Up to version 7 one `groupId` with `topics` and an answer at the top level; from version 8 on `groups` in both.
 * Starts at 1, as Kafka 4 does (version 0 read from ZooKeeper).
 */
import { arr, bool, defineApi, int16, int32, int64, narr, nstr, str, uuid, ZERO_UUID } from "../schema.ts"

export const offsetFetch = defineApi({
  key: 9,
  name: "OffsetFetch",
  versions: "1-10",
  flexible: 6,
  request: {
    groupId: str("0-7", { default: "" }),
    topics: narr("0-7", "2-7", { name: str("0-7"), partitionIndexes: arr("0-7", int32("0-7")) }, { default: [] }),
    groups: arr("8+", {
      groupId: str("8+"),
      memberId: nstr("9+", "9+", { default: null, ignorable: true }),
      memberEpoch: int32("9+", { default: -1, ignorable: true }),
      topics: narr("8+", "8+", {
        name: str("8-9", { default: "", ignorable: true }),
        topicId: uuid("10+", { default: ZERO_UUID, ignorable: true }),
        partitionIndexes: arr("8+", int32("8+"))
      })
    }, { default: [] }),
    requireStable: bool("7+", { default: false })
  },
  response: {
    throttleTimeMs: int32("3+", { default: 0, ignorable: true }),
    topics: arr("0-7", {
      name: str("0-7"),
      partitions: arr("0-7", {
        partitionIndex: int32("0-7"),
        committedOffset: int64("0-7"),
        committedLeaderEpoch: int32("5-7", { default: -1, ignorable: true }),
        metadata: nstr("0-7", "0-7"),
        errorCode: int16("0-7")
      })
    }, { default: [] }),
    errorCode: int16("2-7", { default: 0, ignorable: true }),
    groups: arr("8+", {
      groupId: str("8+"),
      topics: arr("8+", {
        name: str("8-9", { default: "", ignorable: true }),
        topicId: uuid("10+", { default: ZERO_UUID, ignorable: true }),
        partitions: arr("8+", {
          partitionIndex: int32("8+"),
          committedOffset: int64("8+"),
          committedLeaderEpoch: int32("8+", { default: -1 }),
          metadata: nstr("8+", "8+"),
          errorCode: int16("8+")
        })
      }),
      errorCode: int16("8+", { default: 0 })
    }, { default: [] })
  }
})
