/**
 * A fetch session with one broker (KIP-227): the broker remembers what was asked for, and a request names only what has
 * changed since the one before, as an answer names only partitions with something new. With thousands of partitions of
 * which few have records that is most of what a consumer sends, reads and throws away.
 *
 * Invariants
 * 1. After a request the broker's session holds exactly the partitions that were asked for, each at the position that it
 *    had then: what is not asked for any more is forgotten in the same request.
 * 2. Whatever leaves in doubt what the broker holds (no answer, an answer about another session) is followed by a full
 *    request, which also ends the session before it.
 *
 * A broker without sessions (before 1.1), or without room for one, answers with session 0: every request is full then.
 * Pure.
 */
import type { fetch } from "../wire/messages/fetch.ts"
import { type RequestOf, ZERO_UUID } from "../wire/schema.ts"
import type { PartitionState } from "./partition.ts"
import { partitionKey } from "./position.ts"

/** A partition in a request, with the token its answer must find unchanged. */
export interface Asked {
  readonly state: PartitionState
  readonly token: number
}

/** What the broker knows of a partition. */
interface Held {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  position: number
  leaderEpoch: number
  /** The last request that it was asked for in. */
  round: number
  asked: Asked
}

type Request = RequestOf<typeof fetch>
export type SessionPart = Pick<Request, "sessionId" | "sessionEpoch" | "topics" | "forgottenTopicsData">

/** The session is gone (evicted, the broker was restarted), or not as we think: FETCH_SESSION_ID_NOT_FOUND and the like. */
const LOST: ReadonlySet<number> = new Set([70, 71, 106])

interface Topic<P> {
  readonly topic: string
  readonly topicId: string
  readonly partitions: Array<P>
}

class Topics<P> {
  readonly #byTopic = new Map<string, Topic<P>>()

  add({ topic, topicId }: Pick<Held, "topic" | "topicId">, part: P): void {
    const key = `${topicId}/${topic}`
    const known = this.#byTopic.get(key)
    if (known === undefined) this.#byTopic.set(key, { topic, topicId, partitions: [part] })
    else known.partitions.push(part)
  }

  get all(): ReadonlyArray<Topic<P>> {
    return [...this.#byTopic.values()]
  }
}

const idOf = (state: PartitionState): string => state.topicId === "" ? ZERO_UUID : state.topicId

export class FetchSession {
  readonly #partitionMaxBytes: number
  /** 0: none. */
  #id = 0
  /** Of the next request; 0: a full one. */
  #epoch = 0
  #round = 0
  /** By `PartitionState.key`. */
  readonly #held = new Map<string, Held>()
  /** Of topics by their ids. */
  readonly #names = new Map<string, string>()

  constructor(partitionMaxBytes: number) {
    this.#partitionMaxBytes = partitionMaxBytes
  }

  /** What is to be asked for now, in this order where the request is full. */
  request(asked: ReadonlyArray<Asked>): SessionPart {
    if (this.#epoch === 0) {
      this.#held.clear()
      this.#names.clear()
    }
    const round = ++this.#round
    const changed = new Topics<Request["topics"][number]["partitions"][number]>()
    const forgotten = new Topics<number>()
    for (const one of asked) {
      const { state } = one
      const { key, leaderEpoch, partition, position, topic } = state
      const topicId = idOf(state)
      const held = this.#held.get(key)
      const same = held !== undefined && held.topicId === topicId
      if (held !== undefined && !same) forgotten.add(held, partition)
      if (same && held.position === position && held.leaderEpoch === leaderEpoch) {
        held.round = round
        held.asked = one
        continue
      }
      this.#held.set(key, { topic, topicId, partition, position, leaderEpoch, round, asked: one })
      this.#names.set(topicId, topic)
      changed.add({ topic, topicId }, {
        partition,
        currentLeaderEpoch: leaderEpoch,
        fetchOffset: position,
        partitionMaxBytes: this.#partitionMaxBytes
      })
    }
    if (this.#held.size > asked.length) {
      for (const [key, held] of this.#held) {
        if (held.round === round) continue
        this.#held.delete(key)
        forgotten.add(held, held.partition)
      }
    }
    return {
      sessionId: this.#id,
      sessionEpoch: this.#epoch,
      topics: changed.all,
      forgottenTopicsData: forgotten.all
    }
  }

  /** Takes the answer's word of the session. False: it is lost, nothing was fetched, and the next request is a full one. */
  answered({ errorCode, sessionId }: { readonly errorCode: number; readonly sessionId: number }): boolean {
    const wasFull = this.#epoch === 0
    if (errorCode !== 0 || sessionId === 0) this.#id = 0
    else this.#id = sessionId
    this.#epoch = this.#id === 0 ? 0 : this.#epoch % 0x7fff_ffff + 1
    return wasFull || !LOST.has(errorCode)
  }

  /** There was no answer: what the broker holds is not known. */
  failed(): void {
    this.#epoch = 0
  }

  /** Who asked for a partition of an answer, which has the topic's name or its id; null: nobody. */
  asker(topic: string, topicId: string, partition: number): Asked | null {
    const name = topic === "" ? this.#names.get(topicId) : topic
    const held = name === undefined ? undefined : this.#held.get(partitionKey({ topic: name, partition }))
    return held === undefined || (topic === "" && held.topicId !== topicId) ? null : held.asked
  }
}
