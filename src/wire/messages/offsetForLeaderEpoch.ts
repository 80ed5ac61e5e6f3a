/**
 * OffsetForLeaderEpoch (KIP-101, KIP-320): where a leader's epoch ended, to see that a log was truncated.
 *
 * Starts at 2, as Kafka 4 does. From 3 on the right to describe the topic is enough; below, it takes rights on the
 * cluster.
 */
import { arr, defineApi, int16, int32, int64, str } from "../schema.ts"

export const offsetForLeaderEpoch = defineApi({
  key: 23,
  name: "OffsetForLeaderEpoch",
  versions: "2-4",
  flexible: 4,
  request: {
    replicaId: int32("3+", { default: -2, ignorable: true }),
    topics: arr("0+", {
      topic: str("0+"),
      partitions: arr("0+", {
        partition: int32("0+"),
        currentLeaderEpoch: int32("2+", { default: -1 }),
        leaderEpoch: int32("0+")
      })
    })
  },
  response: {
    throttleTimeMs: int32("2+", { default: 0 }),
    topics: arr("0+", {
      topic: str("0+"),
      partitions: arr("0+", {
        errorCode: int16("0+"),
        partition: int32("0+"),
        leaderEpoch: int32("1+", { default: -1 }),
        endOffset: int64("0+", { default: -1 })
      })
    })
  }
})
