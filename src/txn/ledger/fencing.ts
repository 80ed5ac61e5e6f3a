/**
 * Patience with undecided entries of others, and its end: a producer that lets an entry stand for too long is fenced
 * (InitProducerId with its transactional id), which has its transaction aborted, or shows that it was committed.
 *
 * Serves progress only: nothing that is safe depends on it. Patience doubles each time the same id is fenced; workers
 * that fence one another without limit never come to an end.
 */
import { Effect, FiberMap, type Scope } from "effect"
import type { Cluster } from "../../wire/cluster.ts"
import { nowMs } from "../../wire/retry.ts"
import type { ProducerRefused } from "../produceErrors.ts"
import { defaultProducerSettings } from "../producerSettings.ts"
import { takeOver } from "../takeOver.ts"
import { type Mutations, NO_MUTATIONS } from "./mutations.ts"
import type { OpenEntry } from "./tail.ts"

/** Who has waited how long for whom. Pure; times are monotonic, or a wall clock that is set would end or stretch patience. */
export class Patience {
  readonly #baseMs: number
  readonly #fenced = new Map<string, number>()
  /** When a wait for the entry at an offset began. */
  #since = new Map<string, number>()

  constructor(baseMs: number) {
    this.#baseMs = baseMs
  }

  /** How long an entry of this id may stand, milliseconds. */
  of(transactionalId: string): number {
    return this.#baseMs * 2 ** Math.min(30, this.#fenced.get(transactionalId) ?? 0)
  }

  /** The ids whose time is over, and how long the others still have. Starts the clock for entries not seen before. */
  judge(
    partition: number,
    entries: ReadonlyArray<OpenEntry>,
    nowMs: number
  ): { readonly over: ReadonlyArray<string>; readonly leftMs: number } {
    const over = new Set<string>()
    let leftMs = Infinity
    for (const entry of entries) {
      const key = `${partition}/${entry.offset}`
      const since = this.#since.get(key) ?? nowMs
      this.#since.set(key, since)
      const left = since + this.of(entry.done.transactionalId) - nowMs
      if (left <= 0) over.add(entry.done.transactionalId)
      else leftMs = Math.min(leftMs, left)
    }
    return { over: [...over], leftMs }
  }

  /** Entries that are decided need no clock any more. */
  forget(partition: number, open: ReadonlyArray<OpenEntry>): void {
    const keep = new Set(open.map((entry) => `${partition}/${entry.offset}`))
    this.#since = new Map([...this.#since].filter(([key]) => !key.startsWith(`${partition}/`) || keep.has(key)))
  }

  fenced(transactionalId: string): void {
    this.#fenced.set(transactionalId, (this.#fenced.get(transactionalId) ?? 0) + 1)
  }
}

export interface Fencer {
  /**
   * Looks at entries that are in a lane's way; fences, in the background, those whose time is over. Gives how long to
   * wait at most before it should be asked again, milliseconds. Never fences `own`, the asking lane's ids.
   */
  readonly consider: (
    partition: number,
    entries: ReadonlyArray<OpenEntry>,
    open: ReadonlyArray<OpenEntry>,
    own: ReadonlyArray<string>
  ) => Effect.Effect<number>
}

export interface FencerOptions {
  readonly cluster: Cluster
  /** Names the connections. */
  readonly purpose: string
  readonly patienceMs: number
  readonly mutations?: Mutations
  readonly log: (level: "info" | "warn", message: string) => void
}

/** While a fencing is under way, and the entry not decided yet. */
const ASK_AGAIN_MS = 1_000

export const makeFencer = (options: FencerOptions): Effect.Effect<Fencer, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { cluster, log, mutations = NO_MUTATIONS, purpose } = options
    const patience = new Patience(mutations.noPatience === true ? 0 : options.patienceMs)
    const fencing = yield* FiberMap.make<string, void, never>()
    yield* Effect.addFinalizer(() => cluster.release(purpose))

    const fence = (transactionalId: string): Effect.Effect<void> =>
      takeOver({ ...defaultProducerSettings, cluster, transactionalId, purpose }).pipe(
        Effect.andThen(
          Effect.sync(() =>
            log(
              "warn",
              `transactional id ${transactionalId} was fenced: its transaction stood undecided for ${
                patience.of(transactionalId)
              } ms in the way of others`
            )
          )
        ),
        Effect.catch((error: ProducerRefused) =>
          Effect.sync(() =>
            log(
              "warn",
              `transactional id ${transactionalId} cannot be fenced, and records wait for its transaction to time out: ${error.message}`
            )
          )
        ),
        // Also when it was refused: asked again later and later.
        Effect.andThen(Effect.sync(() => patience.fenced(transactionalId)))
      )
    return {
      consider: (partition, entries, open, own) =>
        Effect.gen(function*() {
          patience.forget(partition, open)
          const others = entries.filter((entry) => !own.includes(entry.done.transactionalId))
          const { leftMs, over } = patience.judge(partition, others, yield* nowMs)
          for (const id of over) yield* FiberMap.run(fencing, id, fence(id), { onlyIfMissing: true })
          return Math.max(1, Math.min(leftMs, ASK_AGAIN_MS))
        })
    }
  })
