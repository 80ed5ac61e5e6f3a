/** What runs in the world: lanes by the rules R3 to R9, pruners by R11, and a scheduler that draws who goes on. */
import { checkClaims, sortClaim } from "../../../src/txn/ledger/rules.ts"
import type { OpenEntry } from "../../../src/txn/ledger/tail.ts"
import { contains } from "../../../src/wire/ranges.ts"
import { always, type Answer, claimOf, type Fiber, Violation, type Worker, World, type WorldOptions } from "./world.ts"

type Step<A> = Generator<() => boolean, A, void>

/** Asks until the answer is not "again". */
function* request<A>(world: World, carryOut: () => Answer<A>): Step<Exclude<Answer<A>, { readonly kind: "again" }>> {
  while (true) {
    yield always
    const answer = world.ask(carryOut)
    if (answer.kind !== "again") {
      yield always
      return answer
    }
  }
}

/** R8: InitProducerId until it succeeds, then the ledger to its end. */
function* resolve(world: World, worker: Worker, id: string): Step<{ producerId: number; epoch: number }> {
  while (true) {
    const answer = yield* request(world, () => world.init(id))
    if (answer.kind !== "ok") continue
    const end = world.log.length
    yield () => worker.tail.ready && worker.tail.next >= end
    return { ...answer.value }
  }
}

interface Attempt {
  readonly token: number
  readonly records: ReadonlyArray<number>
  readonly own: { producerId: number; epoch: number }
}

/** Fences, sometimes; in the phase without faults never: it serves progress only where somebody is gone. */
const fence = (world: World, entries: ReadonlyArray<OpenEntry>): void => {
  const victim = entries[0]?.done.transactionalId
  if (victim !== undefined && world.faults && world.random.occurs(0.05)) world.init(victim)
}

/** R4 and R5: the outputs, the entry, the wait. True: commit may be asked for. */
function* prepare(
  world: World,
  worker: Worker,
  id: string,
  { own, records }: Attempt,
  generation: number
): Step<"commit" | "abort" | "doubt"> {
  const outputs = function*() {
    return (yield* request(world, () => world.produce(id, own.epoch, records))).kind
  }
  const entryFirst = world.random.occurs(0.5)
  if (!entryFirst) {
    const kind = yield* outputs()
    if (kind !== "ok") return "doubt"
  }
  const written = yield* request(world, () => world.done(id, own.epoch, records))
  if (written.kind !== "ok") return "doubt"
  if (entryFirst) {
    const kind = yield* outputs()
    if (kind !== "ok") return "doubt"
  }
  const x = written.value
  if (world.mutations.skipCheck === true) return "commit"
  const pruned = (): boolean => worker.generation !== generation && world.mutations.goOnWhenPruned !== true
  while (true) {
    yield () => pruned() || worker.tail.next >= x
    if (pruned()) return "abort"
    const verdict = checkClaims(worker.tail, x, own, [claimOf(records)], world.mutations)
    if (verdict.kind !== "wait") return verdict.kind
    fence(world, verdict.entries)
    yield () =>
      pruned() || verdict.entries.some((entry) => !worker.tail.open.includes(entry)) || world.random.occurs(0.02)
  }
}

/** One transaction. False: R8 is owed. */
function* transaction(world: World, worker: Worker, id: string, attempt: Attempt): Step<boolean> {
  const { own, records, token } = attempt
  const prepared = yield* prepare(world, worker, id, attempt, worker.generation)
  if (prepared === "doubt") return false
  const commit = prepared === "commit"
  if (commit && world.mutations.acceptBeforeCommit === true) world.accept(token, records)
  const ended = yield* request(world, () => world.end(id, own.epoch, commit))
  if (ended.kind === "ok") own.epoch = ended.value
  if (ended.kind === "ok" && commit) {
    // The acknowledgement may be lost; whoever gets the records then finds them done.
    if (!world.faults || world.random.occurs(0.8)) world.accept(token, records)
  }
  if (ended.kind === "ok") return true
  return !commit && ended.kind === "noAnswer" && world.mutations.beginWithoutInit === true
}

export function* lane(world: World, worker: Worker, id: string): Fiber {
  while (true) {
    const own = yield* resolve(world, worker, id)
    let sure = true
    while (sure) {
      yield always
      const { records, token } = world.acquire()
      if (records.length === 0) continue
      yield always
      const sorted = sortClaim(worker.tail, claimOf(records))
      world.accept(token, records.filter((r) => contains(sorted.done, r)))
      fence(world, sorted.obstacles)
      const ours = records.filter((r) => contains(sorted.ours, r))
      if (ours.length > 0) sure = yield* transaction(world, worker, id, { token, records: ours, own })
      world.release(token)
    }
  }
}

/** R11. */
export function* pruner(world: World, worker: Worker): Fiber {
  const { mutations } = world
  while (true) {
    yield () => world.random.occurs(0.1) && worker.tail.ready
    const facts = worker.tail.facts
    if (mutations.pruneWithoutSnapshot === true) {
      world.deleteBelow(facts.decidedBelow)
      continue
    }
    yield always
    const at = world.snapshot(facts)
    const generation = worker.generation
    if (mutations.pruneEarly !== true) {
      yield () => worker.generation !== generation || (worker.tail.next > at && worker.tail.lastStable > at)
    }
    if (worker.generation === generation) world.deleteBelow(facts.decidedBelow)
  }
}

export interface SimulationOptions extends WorldOptions {
  readonly workers?: number
  readonly lanesPerWorker?: number
  /** Steps under faults, then at most so many without, in which everything must come to its end. */
  readonly steps?: number
  readonly drainSteps?: number
  readonly pruning?: boolean
}

class Run {
  readonly world: World
  readonly workers: Array<
    { readonly worker: Worker; fibers: Array<{ readonly fiber: Fiber; ready: () => boolean; restart: () => Fiber }> }
  > = []

  constructor(options: SimulationOptions, makeWorker: (world: World) => Worker) {
    this.world = new World(options)
    for (let w = 0; w < (options.workers ?? 2); w++) {
      const worker = makeWorker(this.world)
      const makers: Array<() => Fiber> = Array.from(
        { length: options.lanesPerWorker ?? 2 },
        (_, n) => () => lane(this.world, worker, `w${w}-${n}`)
      )
      if (options.pruning !== false) makers.push(() => pruner(this.world, worker))
      this.workers.push({ worker, fibers: makers.map((restart) => ({ fiber: restart(), ready: always, restart })) })
    }
  }

  /** One step of something drawn. */
  step(): void {
    const { random } = this.world
    const drawn = random.below(100)
    const one = this.workers[random.below(this.workers.length)]
    if (one === undefined) return
    if (drawn < 30) return one.worker.read()
    if (drawn < 40) return this.world.writeMarker(this.world.faults)
    if (this.world.faults && drawn < 48) return this.fault(one)
    const fiber = one.fibers[random.below(one.fibers.length)]
    if (fiber === undefined || !fiber.ready()) return
    const next = fiber.fiber.next()
    if (next.done !== true) fiber.ready = next.value
  }

  fault(one: Run["workers"][number]): void {
    const { random } = this.world
    const drawn = random.below(20)
    if (drawn < 8) return this.world.expireLock()
    if (drawn < 13) return this.world.lateRequest()
    if (drawn < 15) return this.world.timeOut()
    if (drawn > 16) return
    // A crash: the worker forgets everything; its locks end some time.
    one.worker.reset()
    for (const fiber of one.fibers) Object.assign(fiber, { fiber: fiber.restart(), ready: always })
  }
}

/** Runs a seed; gives what was violated and the history's length, or null. */
export const simulate = (options: SimulationOptions, makeWorker: (world: World) => Worker): string | null => {
  const run = new Run(options, makeWorker)
  try {
    for (let n = 0; n < (options.steps ?? 600); n++) run.step()
    run.world.faults = false
    for (let n = 0; n < (options.drainSteps ?? 20_000) && !run.world.finished; n++) {
      // Locks of crashed lanes end by time alone.
      if (n % 500 === 499) run.world.expireLock()
      run.step()
    }
    return run.world.finished
      ? null
      : `stuck: ${run.world.acknowledged.filter((done) => !done).length} records are never acknowledged`
  } catch (error) {
    if (error instanceof Violation) return error.message
    throw error
  }
}
