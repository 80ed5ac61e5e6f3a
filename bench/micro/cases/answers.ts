/** Answers of Fetch and ShareFetch, by partitions. The records are views on the answer, so their size does not count. */
import { fetch } from "../../../src/wire/messages/fetch.ts"
import { shareFetch } from "../../../src/wire/messages/shareFetch.ts"
import { batchOf, type MicroCase } from "../microCase.ts"

const TOPIC = "q2pvR0GnTWqVwkWkwPbN1Q"
const FETCH = 17
const SHARE_FETCH = 2
const PARTITIONS = [1, 4, 64, 1000] as const

/** About the same work for each: so many partitions are read in all. */
const partitionsOf = (count: number, read: number) => ({
  warmUp: Math.ceil(3 * read / count),
  operations: Math.ceil(read / count)
})

const indexes = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, n) => n)

const fetched = (count: number): MicroCase => ({
  name: `read a Fetch answer of ${count} partitions`,
  ...partitionsOf(count, 2000),
  prepare: () => {
    const records = batchOf(4, 100, "none")
    const answer = Buffer.concat(fetch.response.encode(FETCH, {
      errorCode: 0,
      sessionId: 77,
      responses: [{
        topicId: TOPIC,
        partitions: indexes(count).map((partitionIndex) => ({
          partitionIndex,
          errorCode: 0,
          highWatermark: 5_000_000_000 + partitionIndex,
          lastStableOffset: 5_000_000_000 + partitionIndex,
          logStartOffset: 10,
          abortedTransactions: [],
          records
        }))
      }]
    }))
    return () => fetch.response.decode(FETCH, answer)
  }
})

const shareFetched = (count: number): MicroCase => ({
  name: `read a ShareFetch answer of ${count} partitions`,
  ...partitionsOf(count, 2000),
  prepare: () => {
    const records = batchOf(4, 100, "none")
    const answer = Buffer.concat(shareFetch.response.encode(SHARE_FETCH, {
      throttleTimeMs: 0,
      errorCode: 0,
      acquisitionLockTimeoutMs: 30_000,
      responses: [{
        topicId: TOPIC,
        partitions: indexes(count).map((partitionIndex) => ({
          partitionIndex,
          errorCode: 0,
          acknowledgeErrorCode: 0,
          currentLeader: { leaderId: 1, leaderEpoch: 3 },
          records,
          acquiredRecords: [
            { firstOffset: 5_000_000_000, lastOffset: 5_000_000_099, deliveryCount: 1 },
            { firstOffset: 5_000_000_200, lastOffset: 5_000_000_299, deliveryCount: 2 }
          ]
        }))
      }],
      nodeEndpoints: []
    }))
    return () => shareFetch.response.decode(SHARE_FETCH, answer)
  }
})

export const cases: ReadonlyArray<MicroCase> = [...PARTITIONS.map(fetched), ...PARTITIONS.map(shareFetched)]
