/**
 * One run: lanes of onceover on two clusters in this process, faults as the plan says, then a phase without faults in
 * which everything has to come to its end. The checker looks after every event.
 */
import { Clock, Effect, Random, Scheduler, Scope } from "effect"
import { type Embedded, makeEmbedded } from "../../src/embedded/embedded.ts"
import type { Passing } from "../../src/embedded/faults.ts"
import { checkAccepted } from "./acknowledgements.ts"
import { Checker, Violation } from "./checker.ts"
import { Coordinator } from "./coordinator.ts"
import { Dice } from "./dice.ts"
import { scheduleFaults, stopFaults } from "./faults.ts"
import { History } from "./history.ts"
import { Gate, Loop, START_MS } from "./loop.ts"
import { faultsOf, type Network } from "./network.ts"
import type { Plan } from "./plan.ts"
import { scheduleRecords } from "./sourceRecords.ts"
import { GROUP, TARGET_TOPIC, TOPIC, Worker } from "./worker.ts"

export interface World {
  readonly plan: Plan
  readonly loop: Loop
  readonly dice: Dice
  readonly history: History
  readonly network: Network
  readonly source: Embedded
  readonly target: Embedded
  readonly workers: ReadonlyArray<Worker>
  readonly checker: Checker
  /** Told of requests while faults are on. */
  onRequest: (cluster: string, passing: Passing) => void
  /** Runs an operator's program in virtual time. */
  readonly run: (program: Effect.Effect<void>) => void
  /** A process ended by a mistake of its own. */
  defect: unknown
}

export interface Result {
  readonly plan: Plan
  /** null: all that was promised was kept. */
  readonly problem: string | null
  readonly history: History
  readonly virtualMs: number
  readonly steps: number
  readonly requests: number
  readonly duplicates: number
}

/** For runs that come to no end: a mistake in a loop without time. */
const MAX_STEPS = 1_500_000
/** After all is done, late requests and markers may still do harm. */
const AFTERMATH_MS = 7_000

const setUp = (plan: Plan, prepare: (world: World) => void): World => {
  const loop = new Loop()
  const history = new History(loop)
  const dice = new Dice(plan.seed, "world")
  const network: Network = { cut: new Set(), clogged: new Set(), slowed: new Map(), old: new Set(), rough: true }
  const scope = Scope.makeUnsafe()
  const clock = loop.clock(new Gate())
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(
      Effect.provideService(Clock.Clock, clock),
      Effect.provideService(Random.Random, dice.service),
      Effect.provideService(Scheduler.Scheduler, loop.scheduler)
    )
  const make = (id: string, brokers: number, seed: number): Embedded => {
    const markers = new Dice(plan.seed, `markers ${id}`)
    const embedded = Effect.runSync(within(
      makeEmbedded({
        clusterId: `${id}-cluster-0000000`,
        brokers,
        seed,
        transactionVersion: plan.transactionVersion,
        kip1289: plan.draft,
        markerDelayMs: () => markers.int(1, 10)
      }).pipe(Scope.provide(scope))
    ))
    const decide = faultsOf({
      cluster: id,
      dice: new Dice(plan.seed, `network ${id}`),
      rates: plan.requests,
      network,
      history,
      onRequest: (cluster, passing) => world.onRequest(cluster, passing)
    })
    embedded.faults((passing) => {
      // Told by way of the world: thrown in here, it would end up in the lane that sends.
      try {
        checkAccepted(passing, checker)
      } catch (violation) {
        world.defect ??= violation
      }
      return decide(passing)
    })
    return embedded
  }
  const source = make("source", plan.sourceBrokers, 1)
  const target = plan.mode === "kip-1289" ? source : make("target", plan.targetBrokers, 2)
  source.createTopic(TOPIC, { partitions: plan.partitions })
  target.createTopic(TARGET_TOPIC, { partitions: plan.partitions })
  source.configure("group", GROUP, {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
    "share.record.lock.duration.ms": String(plan.lockMs),
    "share.heartbeat.interval.ms": "500",
    "share.session.timeout.ms": String(plan.sessionTimeoutMs),
    // Without repair far beyond what a broker would allow.
    "share.delivery.count.limit": String(plan.deliveryLimit ?? 1_000_000)
  })
  const checker = new Checker({
    source,
    target,
    sourceTopic: TOPIC,
    targetTopic: TARGET_TOPIC,
    partitions: plan.partitions,
    group: GROUP,
    givesUp: plan.deliveryLimit !== null,
    ordered: plan.mode === "consumer",
    duplicatesAllowed: plan.binding === "at-least-once"
  })
  const coordinator = new Coordinator({
    loop,
    dice: new Dice(plan.seed, "group"),
    history,
    network,
    topic: TOPIC,
    partitions: plan.partitions,
    sessionTimeoutMs: plan.sessionTimeoutMs,
    lossRate: plan.requests.loseAnswer,
    onCommitted: (partition, offset) => checker.positionCommitted(partition, offset)
  })
  const workers = plan.workers.map((lanes, n) =>
    new Worker({
      name: `w${n + 1}`,
      lanes,
      plan,
      loop,
      dice: new Dice(plan.seed, `worker ${n}`),
      history,
      network,
      source,
      target,
      membership: coordinator.membership,
      onDefect: (defect) => world.defect ??= defect
    })
  )
  const world: World = {
    plan,
    loop,
    dice,
    history,
    network,
    source,
    target,
    workers,
    checker,
    run: (program) => void Effect.runFork(within(program), { scheduler: loop.scheduler }),
    onRequest: () => {},
    defect: null
  }
  prepare(world)
  return world
}

const step = async (world: World, untilMs: number): Promise<boolean> => {
  const more = await world.loop.step(untilMs)
  world.checker.check()
  if (world.defect !== null) throw world.defect
  return more
}

const play = async (world: World): Promise<string | null> => {
  const { checker, history, loop, plan } = world
  const faultsEndMs = START_MS + plan.faultPhaseMs
  for (const worker of world.workers) worker.start()
  await loop.settle()
  while (loop.nowMs < faultsEndMs) {
    await step(world, faultsEndMs)
    if (loop.steps > MAX_STEPS) return "the run came to no end"
  }
  stopFaults(world)
  history.add("world", "the faults are over")
  const endMs = loop.nowMs + plan.livenessMs
  while (checker.missing() !== null) {
    if (!(await step(world, endMs))) return `${plan.livenessMs / 1_000} s after the faults: ${checker.missing()}`
    if (loop.steps > MAX_STEPS) return "the run came to no end"
  }
  const aftermathMs = loop.nowMs + AFTERMATH_MS
  while (await step(world, aftermathMs));
  return checker.missing()
}

const problemOf = (error: unknown): string => {
  if (error instanceof Violation) return error.message
  return `a mistake, not a violation: ${error instanceof Error ? error.stack ?? error.message : String(error)}`
}

export interface SimulateOptions {
  /** Faults in place of the plan's: called once, before anything starts. */
  readonly script?: (world: World) => void
  readonly onLine?: (line: string) => void
}

export const simulate = async (plan: Plan, options: SimulateOptions = {}): Promise<Result> => {
  const world = setUp(plan, options.script ?? scheduleFaults)
  world.history.onLine = options.onLine ?? null
  scheduleRecords(world)
  const problem = await play(world).catch(problemOf)
  if (problem !== null) world.history.add("world", problem)
  const { checker, history, loop, source, target } = world
  for (const worker of world.workers) worker.crash()
  return {
    plan,
    problem,
    history,
    virtualMs: loop.nowMs - START_MS,
    steps: loop.steps,
    requests: new Set([source, target]).values().reduce((sum, { driver }) => sum + driver.engine.handled, 0),
    duplicates: checker.duplicates
  }
}
