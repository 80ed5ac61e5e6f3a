/** What a consumer tells a broker with each fetch, and what the broker holds of it by then (KIP-227). */
import { assert, describe, it } from "vitest"
import fc from "fast-check"
import { type Asked, FetchSession, type SessionPart } from "../../src/group/fetchSession.ts"
import { newPartition, type PartitionState } from "../../src/group/partition.ts"

const IDS = ["AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"] as const

const partition = (n: number, position = 0): PartitionState => {
  const state = newPartition({ topic: `t${n % 2}`, partition: n >> 1 }, 1)
  state.topicId = IDS[n % 2] as string
  state.position = position
  return state
}
const asking = (states: ReadonlyArray<PartitionState>): ReadonlyArray<Asked> =>
  states.map((state) => ({ state, token: state.token }))

/** A broker's side: what it would read, by partition and where from. */
class Broker {
  #held = new Map<string, string>()
  #id = 0
  #epoch = 0
  #last = 0

  /** null: it refuses the request. */
  takes(request: SessionPart): ReadonlyArray<string> | null {
    if (request.sessionEpoch === 0) {
      this.#held = new Map()
      this.#id = ++this.#last
      this.#epoch = 0
    } else if (request.sessionId !== this.#id || request.sessionEpoch !== this.#epoch) return null
    this.#epoch++
    for (const { partitions, topicId } of request.forgottenTopicsData ?? []) {
      for (const at of partitions) assert.isTrue(this.#held.delete(`${topicId}-${at}`), "forgets what it never had")
    }
    for (const { partitions, topicId } of request.topics) {
      for (const { currentLeaderEpoch, fetchOffset, partition: at } of partitions) {
        this.#held.set(`${topicId}-${at}`, `${fetchOffset}/${currentLeaderEpoch}`)
      }
    }
    return [...this.#held].map(([key, at]) => `${key}@${at}`).toSorted()
  }

  get id(): number {
    return this.#id
  }
  restart(): void {
    this.#id = -1
  }
}

const wanted = (states: ReadonlyArray<PartitionState>): ReadonlyArray<string> =>
  states.map((state) => `${state.topicId}-${state.partition}@${state.position}/${state.leaderEpoch}`).toSorted()

describe("a fetch session", () => {
  it("names after the first request only what has changed, and finds who asked by name and by id", () => {
    const session = new FetchSession(1_000)
    const states = [0, 1, 2, 3].map((n) => partition(n))
    assert.lengthOf(session.request(asking(states)).topics, 2)
    assert.isTrue(session.answered({ errorCode: 0, sessionId: 7 }))
    const [first, second] = states as [PartitionState, PartitionState]
    first.position = 5
    assert.deepStrictEqual(session.request(asking(states.slice(0, 3))), {
      sessionId: 7,
      sessionEpoch: 1,
      topics: [{
        topic: "t0",
        topicId: IDS[0],
        partitions: [{ partition: 0, currentLeaderEpoch: first.leaderEpoch, fetchOffset: 5, partitionMaxBytes: 1_000 }]
      }],
      forgottenTopicsData: [{ topic: "t1", topicId: IDS[1], partitions: [1] }]
    })
    assert.strictEqual(session.asker("t1", "", 0)?.state, second)
    assert.strictEqual(session.asker("", IDS[1], 0)?.state, second)
    assert.isNull(session.asker("", IDS[1], 1))
    assert.isNull(session.asker("", IDS[2], 0))
  })

  it("a broker that has none gets all of it each time", () => {
    const session = new FetchSession(1_000)
    const states = [partition(0), partition(1)]
    for (let n = 0; n < 3; n++) {
      const { sessionEpoch, topics } = session.request(asking(states))
      assert.deepStrictEqual([sessionEpoch, topics.length], [0, 2])
      assert.isTrue(session.answered({ errorCode: 0, sessionId: 0 }))
    }
  })

  it("one that is lost is said to be, once; the next request is full", () => {
    const session = new FetchSession(1_000)
    const states = [partition(0)]
    session.request(asking(states))
    session.answered({ errorCode: 0, sessionId: 3 })
    session.request(asking(states))
    assert.isFalse(session.answered({ errorCode: 70, sessionId: 0 }))
    assert.lengthOf(session.request(asking(states)).topics, 1)
    // A full request that is refused with it is an error like others.
    assert.isTrue(session.answered({ errorCode: 70, sessionId: 0 }))
  })

  it("whatever is asked for, lost or made anew, the broker holds what was asked for last", () => {
    const step = fc.record({
      asked: fc.subarray([0, 1, 2, 3, 4, 5]),
      moved: fc.subarray([0, 1, 2, 3, 4, 5]),
      anew: fc.constantFrom(null, null, 0, 1),
      fate: fc.constantFrom("answered", "answered", "answered", "lost", "unheard", "restart")
    })
    fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const session = new FetchSession(1_000)
      const broker = new Broker()
      const states = [0, 1, 2, 3, 4, 5].map((n) => partition(n))
      let made = 0
      for (const { anew, asked, fate, moved } of steps) {
        for (const n of moved) (states[n] as PartitionState).position++
        if (anew !== null) {
          made++
          for (const n of [anew, anew + 2, anew + 4]) (states[n] as PartitionState).topicId = `topic ${made}`
        }
        const now = asked.map((n) => states[n] as PartitionState)
        const request = session.request(asking(now))
        if (fate === "lost") {
          session.failed()
          continue
        }
        const held = broker.takes(request)
        if (held !== null) assert.deepStrictEqual(held, wanted(now))
        if (fate === "unheard") session.failed()
        else {
          const understood = session.answered(
            held === null ? { errorCode: 70, sessionId: 0 } : { errorCode: 0, sessionId: broker.id }
          )
          assert.strictEqual(understood, held !== null)
        }
        if (fate === "restart") broker.restart()
      }
    }))
  })
})
