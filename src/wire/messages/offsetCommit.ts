/**
 * OffsetCommit (v6: leader epochs, KIP-320; v7: static members, KIP-345; v9: KIP-848; v10: topic ids).
 *
 * Starts at 2, as Kafka 4 does. Outside of a group's generation: member id "", generation -1.
 */
import { arr, defineApi, int16, int32, int64, nstr, str, uuid, ZERO_UUID } from "../schema.ts"

export const offsetCommit = defineApi({
  key: 8,
  name: "OffsetCommit",
  versions: "2-10",
  flexible: 8,
  request: {
    groupId: str("0+"),
    generationIdOrMemberEpoch: int32("1+", { default: -1 }),
    memberId: str("1+"),
    groupInstanceId: nstr("7+", "7+", { default: null }),
    retentionTimeMs: int64("2-4", { default: -1, ignorable: true }),
    topics: arr("0+", {
      name: str("0-9", { default: "", ignorable: true }),
      topicId: uuid("10+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        committedOffset: int64("0+"),
        committedLeaderEpoch: int32("6+", { default: -1, ignorable: true }),
        committedMetadata: nstr("0+", "0+")
      })
    })
  },
  response: {
    throttleTimeMs: int32("3+", { default: 0, ignorable: true }),
    topics: arr("0+", {
      name: str("0-9", { default: "", ignorable: true }),
      topicId: uuid("10+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("0+", { partitionIndex: int32("0+"), errorCode: int16("0+") })
    })
  }
})
