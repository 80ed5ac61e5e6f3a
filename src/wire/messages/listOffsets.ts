/**
 * ListOffsets (v2: isolation level; v4: leader epochs, KIP-320; v7: -3 the largest timestamp, KIP-734; v8: -4 the
 * earliest local, KIP-405; v9: -5 the last tiered, KIP-1005; v10: a timeout for remote logs, KIP-1075; v11: -6 the
 * earliest not yet uploaded, KIP-1023).
 *
 * Starts at 1, the first version with one offset an answer. Timestamps -1 latest and -2 earliest work in all of them.
 */
import { arr, defineApi, int16, int32, int64, int8, str } from "../schema.ts"

/** Timestamps that ask for the log's first offset, and for its end. */
export const EARLIEST = -2
export const LATEST = -1

export const listOffsets = defineApi({
  key: 2,
  name: "ListOffsets",
  versions: "1-11",
  flexible: 6,
  request: {
    replicaId: int32("0+"),
    isolationLevel: int8("2+", { default: 0 }),
    topics: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        currentLeaderEpoch: int32("4+", { default: -1, ignorable: true }),
        timestamp: int64("0+")
      })
    }),
    timeoutMs: int32("10+", { default: 0, ignorable: true })
  },
  response: {
    throttleTimeMs: int32("2+", { default: 0, ignorable: true }),
    topics: arr("0+", {
      name: str("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        // Of a record: whatever its writer has put there.
        timestamp: int64("1+", { default: -1, rounded: true }),
        offset: int64("1+", { default: -1 }),
        leaderEpoch: int32("4+", { default: -1 })
      })
    })
  }
})
