/** One process of onceover: its lanes on its own connections. It can be killed, stopped for a while, and started again. */
import { Cause, Clock, Effect, Exit, type Fiber, Logger, Random, Scheduler } from "effect"
import type { Embedded } from "../../src/embedded/embedded.ts"
import { runLane } from "../../src/mirror/lane.ts"
import type { Source } from "../../src/mirror/delivery.ts"
import type { LaneEvents } from "../../src/mirror/laneEvents.ts"
import { ledgerStart } from "../../src/mirror/ledger/startAt.ts"
import { makeFlowRepairs } from "../../src/mirror/repair/flowRepairs.ts"
import { type Repairs, withRepairEvents, withRepairs } from "../../src/mirror/repair/repairs.ts"
import { makeGroupSource } from "../../src/mirror/sources/groupSource.ts"
import { makeShareSource } from "../../src/mirror/sources/shareSource.ts"
import type { MakeMembership } from "../../src/group/membership.ts"
import { atLeastOnce } from "../../src/txn/atLeastOnce.ts"
import type { BindingCandidate } from "../../src/txn/binding.ts"
import { kip1289 } from "../../src/txn/kip1289.ts"
import { ledger } from "../../src/txn/ledger/ledgerBinding.ts"
import { format, rangeSet } from "../../src/wire/ranges.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import type { Dice } from "./dice.ts"
import type { History } from "./history.ts"
import { Gate, type Loop } from "./loop.ts"
import { clientOf, type Network } from "./network.ts"
import type { Plan } from "./plan.ts"

export const TOPIC = "orders"
/** Another name, as with KIP-1289 both are in one cluster. */
export const TARGET_TOPIC = "copies"
export const GROUP = "mirror"
export const FLOW = "flow"

export interface WorkerParts {
  readonly name: string
  readonly lanes: number
  readonly plan: Plan
  readonly loop: Loop
  readonly dice: Dice
  readonly history: History
  readonly network: Network
  readonly source: Embedded
  readonly target: Embedded
  /** Consumer mode. */
  readonly membership: (member: string, gate: Gate) => MakeMembership
  /** A mistake in the code, not a failure. */
  readonly onDefect: (defect: unknown) => void
}

const CLIENT_SETTINGS = { "request.timeout.ms": "4000", "metadata.max.age.ms": "30000" }
const RESTART_MS = 300
const POLL_WAIT_MS = 300
const REPAIR_MS = 2_000

interface LaneParts {
  readonly client: string
  readonly n: number
  readonly cluster: Cluster
  readonly candidate: BindingCandidate
  readonly gate: Gate
  readonly repairs: Repairs | null
}

export const transactionalId = (worker: string, lane: string): string => `onceover-${FLOW}-${worker}-${lane}`

export class Worker {
  readonly name: string
  readonly #parts: WorkerParts
  #incarnation = 0
  #gate = new Gate()
  #fiber: Fiber.Fiber<unknown, unknown> | null = null
  #stopping = false
  lanesEnded = 0

  constructor(parts: WorkerParts) {
    this.name = parts.name
    this.#parts = parts
  }

  get running(): boolean {
    return this.#fiber !== null
  }
  get frozen(): boolean {
    return this.#gate.closed
  }
  /** The name of its connections in this life. */
  get client(): string {
    return `${this.name}.${this.#incarnation}`
  }
  get transactionalIds(): ReadonlyArray<string> {
    return Array.from({ length: this.#parts.lanes }, (_, n) => transactionalId(this.name, String(n)))
  }

  start(): void {
    const { dice, history, loop } = this.#parts
    this.#incarnation++
    this.#gate = new Gate()
    this.#stopping = false
    history.add(this.client, `starts with ${this.#parts.lanes} lane(s)`)
    const logger = Logger.make(({ message }) => void history.add(this.client, `log: ${String(message)}`))
    const program = this.#supervised(this.client, this.#gate).pipe(
      Effect.provideService(Clock.Clock, loop.clock(this.#gate)),
      Effect.provideService(Random.Random, dice.service),
      Effect.provideService(Scheduler.Scheduler, loop.scheduler),
      Effect.provideService(Logger.CurrentLoggers, new Set([logger]))
    )
    this.#fiber = Effect.runFork(program, { scheduler: loop.scheduler })
    this.#fiber.addObserver((exit) => {
      if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) this.#parts.onDefect(Cause.squash(exit.cause))
    })
  }

  /** As SIGKILL: nothing that it does from now on reaches anybody. What it has sent is under way. */
  crash(): void {
    const { history, network, source, target } = this.#parts
    if (this.#fiber === null) return
    history.add(this.client, "is killed")
    network.cut.add(this.client)
    // The brokers see closed connections.
    source.disconnect(this.client)
    target.disconnect(this.client)
    this.#gate.open()
    // Its finalizers run in vain; nobody waits for them.
    this.#fiber.interruptUnsafe()
    this.#fiber = null
  }

  freeze(): void {
    this.#parts.history.add(this.client, "is stopped (SIGSTOP)")
    this.#gate.close()
  }
  thaw(): void {
    if (!this.#gate.closed) return
    this.#parts.history.add(this.client, "goes on (SIGCONT)")
    this.#gate.open()
  }
  /** In order: rounds end, what is held goes back. */
  stop(): void {
    this.#stopping = true
  }

  #supervised(client: string, gate: Gate): Effect.Effect<void> {
    const { history } = this.#parts
    return Effect.gen({ self: this }, function*() {
      while (!this.#stopping) {
        const exit = yield* Effect.exit(Effect.scoped(this.#run(client, gate)))
        if (Exit.isSuccess(exit)) return
        if (Cause.hasInterruptsOnly(exit.cause)) return
        this.lanesEnded++
        const error = Cause.squash(exit.cause)
        if (Cause.hasDies(exit.cause)) throw error
        history.add(client, `ends, and begins again: ${error instanceof Error ? error.message : String(error)}`)
        yield* Effect.sleep(RESTART_MS)
      }
    })
  }

  #run(client: string, gate: Gate) {
    return Effect.gen({ self: this }, function*() {
      const { onDefect, source: from, target: to } = this.#parts
      const source = yield* clientOf(from, client, gate, CLIENT_SETTINGS, onDefect)
      const target = yield* clientOf(to, client, gate, CLIENT_SETTINGS, onDefect)
      const candidate = this.#candidate(client, source, target)
      const repairs = this.#parts.plan.deliveryLimit === null
        ? null
        : yield* this.#repairs(client, source, target, candidate)
      const lanes = Array.from({ length: this.#parts.lanes }, (_, n) =>
        this.#lane({
          client,
          n,
          cluster: source,
          candidate,
          gate,
          repairs: n === 0 ? repairs : null
        }))
      yield* Effect.raceFirst(
        Effect.all(lanes, { concurrency: "unbounded", discard: true }),
        repairs?.run ?? Effect.never
      )
    })
  }

  #candidate(client: string, source: Cluster, target: Cluster): BindingCandidate {
    const { history, plan } = this.#parts
    const settings = { transactionTimeoutMs: plan.transactionTimeoutMs, requestTimeoutMs: 4_000 }
    if (plan.binding === "at-least-once") return atLeastOnce({ cluster: target, settings })
    if (plan.binding === "kip-1289") {
      return kip1289({
        source,
        target,
        groupProtocol: "share",
        settings,
        transactionalId: (lane) => transactionalId(this.name, lane)
      })
    }
    return ledger({
      source,
      target,
      flow: FLOW,
      patienceMs: plan.patienceMs,
      partitions: plan.ledgerPartitions,
      snapshots: { entries: plan.snapshotEntries, bytes: Infinity },
      log: (level, message) => history.add(client, `${level}: ${message}`),
      mutations: plan.mutations,
      settings,
      transactionalId: (lane) => transactionalId(this.name, lane)
    })
  }

  /** As a flow does it. */
  #repairs(client: string, source: Cluster, target: Cluster, candidate: BindingCandidate) {
    const { history, plan } = this.#parts
    return Effect.gen(function*() {
      if (candidate.ledger === undefined) return null
      return yield* makeFlowRepairs({
        source,
        target,
        ledger: yield* candidate.ledger,
        flow: FLOW,
        groupId: GROUP,
        readCommitted: true,
        fromEarliest: true,
        ownMembers: () => [],
        onLedgerLost: "fail",
        notes: {
          known: () => new Map(),
          read: Effect.succeed(new Map()),
          write: () => Effect.void,
          problem: () => null
        },
        intervalMs: REPAIR_MS,
        topics: () => [{ source: TOPIC, sourceId: "", target: TARGET_TOPIC, partitions: plan.partitions }],
        onRepaired: (records) => history.add(client, `has repaired ${records} record(s)`),
        log: (level, message) => history.add(client, `${level}: ${message}`)
      })
    })
  }

  #lane(of: LaneParts) {
    const { candidate, client, cluster, gate, n, repairs } = of
    const { plan } = this.#parts
    const name = `${client}/${n}`
    return Effect.scoped(Effect.gen({ self: this }, function*() {
      const ordered = plan.mode === "consumer"
      const source: Source<unknown> = ordered
        ? yield* this.#groupSource(name, cluster, gate, candidate)
        : yield* this.#shareSource(name, cluster)
      // In this order, as a flow does it.
      const binding = yield* candidate.make({ name: String(n), member: () => source.member?.() ?? null })
      yield* runLane({
        source: repairs === null ? source : withRepairs(source, repairs),
        binding,
        ...(plan.gatherMs === 0 ? {} : { cut: { maxRecords: 40, maxBytes: 1_000_000, maxLatencyMs: plan.gatherMs } }),
        placeOf: () => Effect.succeed({ ok: true, rules: { targetTopic: TARGET_TOPIC, chain: null, ordered } }),
        ensureOutput: () => Effect.succeed(null),
        missing: () => {},
        deadLetter: null,
        onRecordRefused: "block",
        errorsTolerance: "none",
        events: repairs === null ? this.#events(name) : withRepairEvents(this.#events(name), repairs),
        stopping: () => this.#stopping
      })
    }))
  }

  #shareSource(name: string, cluster: Cluster) {
    const { history } = this.#parts
    return makeShareSource({
      consumer: {
        cluster,
        groupId: GROUP,
        topics: [TOPIC],
        mode: "explicit",
        closeTimeoutMs: 2_000,
        requestTimeoutMs: 4_000
      },
      maxWaitMs: POLL_WAIT_MS,
      maxBytes: 1_000_000,
      maxRecords: 50,
      deliveryLimit: Infinity,
      onEvent: (event) => {
        if (event.kind === "fenced" || event.kind === "lost" || event.kind === "sessionLost") {
          history.add(name, `share: ${JSON.stringify(event)}`)
        }
      }
    })
  }

  #groupSource(name: string, cluster: Cluster, gate: Gate, { ledger }: BindingCandidate) {
    const { history, loop, membership, plan } = this.#parts
    const said = (level: string, message: string) => void history.add(name, `${level}: ${message}`)
    return Effect.flatMap(ledger ?? Effect.succeed(null), (known) =>
      makeGroupSource({
        consumer: {
          ...(known === null ? {} : { startAt: ledgerStart(known, said) }),
          cluster,
          settings: {
            "bootstrap.servers": "embedded:1",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed"
          },
          groupId: GROUP,
          protocol: "classic",
          onSourceGap: "fail",
          name,
          commitIntervalMs: 200,
          closeTimeoutMs: Math.min(2_000, plan.sessionTimeoutMs),
          membership: membership(name, gate)
        },
        topics: [TOPIC],
        maxWaitMs: POLL_WAIT_MS,
        maxBytes: 1_000_000,
        onForget: () => {},
        onTrouble: ({ partition }, reason) =>
          history.add(name, reason === null ? `${partition} goes on` : `${partition} stands: ${reason}`),
        nowMs: () => loop.nowMs
      }))
  }

  #events(name: string): LaneEvents {
    const { history } = this.#parts
    const ranges = (all: ReadonlyArray<{ readonly first: number; readonly last: number }>) => format(rangeSet(all))
    return {
      acquired: (delivery) => history.add(name, `has ${delivery.partition}: ${ranges(delivery.ranges)}`),
      alreadyDone: (delivery, done) => history.add(name, `finds ${delivery.partition}: ${format(done)} done`),
      mirrored: (delivery, unit) => history.add(name, `mirrored ${delivery.partition}: ${ranges(unit.accept)}`),
      settled: (delivery, settlements, settled) => {
        const what = settled.refused === 0 ? "settled" : `not settled (${settled.reason})`
        history.add(name, `${what} ${delivery.partition}: ${ranges(settlements)}`)
      },
      transaction: (outcome) => history.add(name, `transaction ${outcome}`),
      blocked: (delivery, reason) =>
        history.add(name, `holds ${delivery.partition}: ${ranges(delivery.ranges)}: ${reason}`),
      unblocked: () => {},
      deadLettered: () => {},
      skipped: () => {}
    }
  }
}
