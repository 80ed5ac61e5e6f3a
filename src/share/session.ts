/**
 * One share session: what a member and one broker agree on about which partitions are fetched (KIP-932, "Share
 * sessions"). Pure bookkeeping: it says what the next request must carry, and learns from its answer.
 *
 * Invariants
 * 1. Epoch 0 opens; each answered request takes the next epoch; after 2147483647 comes 1; -1 closes.
 * 2. The partitions here are those the broker has: whatever a fetch named, acknowledgements included, joins the
 *    session, and only being forgotten leaves it.
 * 3. A reset starts a new generation. What was acquired in an older one must not be acknowledged: the broker has
 *    released it, and may have given it out again under the same member id.
 *
 * Requests of one session must be sent strictly one after the other: an epoch out of turn loses the session.
 */
export interface TopicIdPartition {
  /** base64url */
  readonly topicId: string
  readonly partition: number
}

export const partitionKey = (p: TopicIdPartition): string => `${p.topicId}:${p.partition}`

const MAX_EPOCH = 0x7fff_ffff
export const FINAL_EPOCH = -1

export const nextEpoch = (epoch: number): number => (epoch >= MAX_EPOCH ? 1 : epoch + 1)

/** What a fetch must say so that the broker's session holds exactly the wanted partitions. */
export interface FetchPlan {
  readonly epoch: number
  readonly add: ReadonlyArray<TopicIdPartition>
  readonly forget: ReadonlyArray<TopicIdPartition>
}

export class ShareSession {
  #epoch = 0
  #generation = 0
  readonly #partitions = new Map<string, TopicIdPartition>()

  /** The epoch of the next request; 0 while the session is not open. */
  get epoch(): number {
    return this.#epoch
  }
  /** Grows with every reset. */
  get generation(): number {
    return this.#generation
  }
  get isOpen(): boolean {
    return this.#epoch !== 0
  }
  get partitions(): ReadonlyMap<string, TopicIdPartition> {
    return this.#partitions
  }

  /**
   * The next fetch. A partition with an acknowledgement in the same request is not forgotten by it: naming it for
   * the one joins it, and whether the other still counts is not worth asking.
   */
  plan(wanted: ReadonlyMap<string, TopicIdPartition>, acknowledged: ReadonlySet<string>): FetchPlan {
    const add: Array<TopicIdPartition> = []
    const forget: Array<TopicIdPartition> = []
    for (const [key, partition] of wanted) if (!this.#partitions.has(key)) add.push(partition)
    for (const [key, partition] of this.#partitions) {
      if (!wanted.has(key) && !acknowledged.has(key)) forget.push(partition)
    }
    return { epoch: this.#epoch, add, forget }
  }

  /** The broker answered a fetch without a top-level error. `named` is every partition the request named. */
  fetched(plan: FetchPlan, named: Iterable<TopicIdPartition>): void {
    for (const partition of named) this.#partitions.set(partitionKey(partition), partition)
    for (const partition of plan.add) this.#partitions.set(partitionKey(partition), partition)
    for (const partition of plan.forget) this.#partitions.delete(partitionKey(partition))
    this.#epoch = nextEpoch(this.#epoch)
  }

  /** The broker answered an acknowledgement without a top-level error: it counts in the session, but names nothing. */
  acknowledged(): void {
    this.#epoch = nextEpoch(this.#epoch)
  }

  /** The session is gone (closed, lost, refused): the next fetch opens a new one. */
  reset(): void {
    this.#epoch = 0
    this.#generation++
    this.#partitions.clear()
  }
}
