/**
 * R14: whether a lane's transactions have ended where they wrote: each partition that one has touched is looked at before
 * another transaction may rely on it, where a marker may be missing (hanging.ts).
 *
 * When that may be: at a lane's start (what the process before it left), after anything in doubt (R8), and after a
 * time in which a partition can have been without a leader unseen. One transaction close behind the other finds the
 * partition alive, so the way that is hot asks nobody.
 */
import { Effect } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { nowMs } from "../../wire/retry.ts"
import { BindingStopped } from "../binding.ts"
import type { TopicPartition } from "../coordinator.ts"
import { type Asked, type Decision, decisionOf, type OpenThere, openTransactions, writeMarker } from "./hanging.ts"
import type { Producing } from "./rules.ts"
import type { Outcome } from "../transactionState.ts"

/** A leader is not gone and back in less, milliseconds. */
const CALM_MS = 1_000
/** A leader that does not answer holds up nobody's transactions for long, milliseconds. */
const AGAIN_MS = 10_000

/** A transaction of this lane. */
export interface Ending {
  readonly own: Producing
  readonly version: 1 | 2
  readonly begunMs: number
  /** Whether its entry may be in the ledger: without one it was never committed. */
  entry: boolean
  outcome: Outcome["kind"] | "open"
}

interface Touched extends TopicPartition {
  /** The last one there. */
  readonly by: Ending
  /** The one before it, where nobody has looked since. */
  readonly before: Ending | null
  /** It was to be looked at, and its leader did not answer. */
  readonly suspect: boolean
}

export interface EndsOptions {
  readonly cluster: Cluster
  readonly purpose: string
  readonly transactionalId: string
  /** What the ledger says of a transaction; open: its entry has no marker; null: it has no entry. */
  readonly recorded: (producing: Producing) => "committed" | "aborted" | "open" | null
  /** Whether the ledger was read from its first entry on. */
  readonly whole: () => boolean
  readonly log: (level: "debug" | "info" | "warn", message: string) => void
}

type Fate = "committed" | "aborted" | null

const keyOf = ({ partition, topic }: TopicPartition): string => `${topic}/${partition}`
const nameOf = ({ partition, topic }: TopicPartition): string => `${topic}-${partition}`

export class Ends {
  readonly #options: EndsOptions
  readonly #touched = new Map<string, Touched>()
  /** Looked at since this lane began. */
  readonly #known = new Set<string>()
  #last: Ending | null = null
  #againMs = 0
  /** The coordinator's word, before it was asked to begin anew. */
  #decision: Decision | null = null

  constructor(options: EndsOptions) {
    this.#options = options
  }

  /** Notes where a transaction writes. Gives those where this lane was never before: what was left there is not its own. */
  touch(by: Ending, places: ReadonlyArray<TopicPartition>): ReadonlyArray<TopicPartition> {
    const unknown: Array<TopicPartition> = []
    for (const { partition, topic } of places) {
      const at = { topic, partition }
      const key = keyOf(at)
      const touched = this.#touched.get(key)
      if (touched?.by === by) continue
      const isNew = touched === undefined && !this.#known.has(key)
      this.#touched.set(key, { ...at, by, before: touched?.by ?? null, suspect: touched?.suspect ?? isNew })
      if (isNew) unknown.push(at)
    }
    return unknown
  }

  /** A transaction begins. */
  begin(own: Producing, version: 1 | 2): Effect.Effect<Ending> {
    return Effect.map(nowMs, (begunMs) => {
      this.#last = { own, version, begunMs, entry: false, outcome: "open" }
      return this.#last
    })
  }

  /** Whether a partition may have been without a leader since the last transaction began. */
  get mayHang(): Effect.Effect<boolean> {
    return Effect.map(
      nowMs,
      (now) => this.#touched.size > 0 && now - (this.#last?.begunMs ?? now) > CALM_MS && now >= this.#againMs
    )
  }

  /** R8, first: what the coordinator has decided, as long as it knows. */
  get ask(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const last = this.#last
      const isKnown = last !== null && (!last.entry || last.outcome === "committed" || last.outcome === "aborted")
      if (isKnown) return
      const { cluster, purpose, transactionalId } = this.#options
      this.#decision = yield* decisionOf(cluster, purpose, transactionalId)
    })
  }

  /** Transactions of this lane that are open where they should not be; those that could be asked are known afterwards. */
  get find(): Effect.Effect<ReadonlyArray<OpenThere>> {
    return Effect.gen({ self: this }, function*() {
      const { cluster, purpose } = this.#options
      const places = [...this.#touched.values()]
      const { later, open } = yield* openTransactions(cluster, purpose, places.map(asked))
      if (later.length > 0) this.#againMs = (yield* nowMs) + AGAIN_MS
      for (const at of places) {
        const key = keyOf(at)
        if (later.some((one) => keyOf(one) === key)) {
          this.#touched.set(key, { ...at, suspect: true })
          continue
        }
        this.#known.add(key)
        if (!open.some((one) => keyOf(one) === key)) this.#touched.delete(key)
      }
      return open
    })
  }

  /** R8, last: no transaction is open for the coordinator, and the ledger was read to its end. True: markers were written. */
  get settle(): Effect.Effect<boolean, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const open = yield* this.find
      for (const at of open) {
        const { by } = this.#touched.get(keyOf(at)) as Touched
        yield* this.#end(at, this.#fateOf(by), by.version)
        this.#touched.delete(keyOf(at))
      }
      return open.length > 0
    })
  }

  #fateOf(by: Ending): Fate {
    if (by.outcome === "committed" || by.outcome === "aborted") return by.outcome
    return by.entry ? this.#recorded(by.own, by.version) : "aborted"
  }

  #recorded(producing: Producing, version: 1 | 2): Fate {
    const said = this.#options.recorded(producing)
    if (said === "committed" || said === "aborted") return said
    const { epoch, fate, producerId } = this.#decision ?? { epoch: -1, fate: null, producerId: -1 }
    const decided = producerId === producing.producerId && epoch === producing.epoch + (version === 2 ? 1 : 0)
    return decided ? fate : null
  }

  /** Before the first write to these: ends what the process before this one has left hanging. True: there was some. */
  inherit(
    producerId: number,
    version: 1 | 2,
    places: ReadonlyArray<TopicPartition>
  ): Effect.Effect<boolean, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { cluster, purpose } = this.#options
      const all = places.map((at) => ({ ...at, producerId }))
      const { later, open } = yield* openTransactions(cluster, purpose, all)
      for (const at of open) yield* this.#end(at, this.#inherited(at, version), version)
      for (const at of all) {
        if (later.includes(at)) continue
        const touched = this.#touched.get(keyOf(at))
        this.#known.add(keyOf(at))
        if (touched !== undefined) this.#touched.set(keyOf(at), { ...touched, suspect: false })
      }
      return open.length > 0
    })
  }

  #inherited({ epoch, producerId }: OpenThere, version: 1 | 2): Fate {
    const { recorded, whole } = this.#options
    const producing = { producerId, epoch }
    if (recorded(producing) === null && whole()) return "aborted"
    // Under version 1 an epoch has many transactions.
    return version === 2 ? this.#recorded(producing, version) : null
  }

  /**
   * Before the commit of a transaction that took long: whether it lies behind a hanging one that its own marker would
   * decide too. Null, or why it must be aborted. `first`: its first offset by partition.
   */
  behind(by: Ending, first: ReadonlyMap<string, number>): Effect.Effect<string | null> {
    return Effect.gen({ self: this }, function*() {
      const { cluster, purpose } = this.#options
      const all = (yield* nowMs) - by.begunMs > CALM_MS
      const places = [...this.#touched.values()].filter((at) =>
        at.by === by && (all || at.suspect) && first.has(keyOf(at))
      )
      const { open } = yield* openTransactions(cluster, purpose, places.map(asked))
      for (const at of open) {
        if (at.start >= (first.get(keyOf(at)) ?? 0)) continue
        const { before } = this.#touched.get(keyOf(at)) as Touched
        if (before === null || this.#fateOf(before) !== "committed") {
          return `an aborted transaction of this lane is still open in ${nameOf(at)} (KAFKA-20734)`
        }
      }
      return null
    })
  }

  #end(at: OpenThere, fate: Fate, version: 1 | 2): Effect.Effect<void, BindingStopped> {
    return Effect.gen({ self: this }, function*() {
      const { cluster, log, purpose, transactionalId } = this.#options
      const what = `${
        nameOf(at)
      } on "${cluster.name}" has a hanging transaction of ${transactionalId} from offset ${at.start} on: the broker never wrote its end there (KAFKA-20734)`
      if (fate === null) {
        return yield* new BindingStopped({
          binding: "ledger",
          what: `${what}, and whether it was committed cannot be told any more: end it with kafka-transactions.sh abort`
        })
      }
      yield* Effect.mapError(
        writeMarker(cluster, purpose, at, fate === "committed", version),
        (error) =>
          new BindingStopped({
            binding: "ledger",
            what: `${what}; it was ${fate}, and that cannot be written: ${error.message}`
          })
      )
      log("warn", `${what}; it was ${fate}, which is written now`)
    })
  }
}

const asked = ({ by, partition, topic }: Touched): Asked => ({ topic, partition, producerId: by.own.producerId })
export { keyOf as placeKey }
