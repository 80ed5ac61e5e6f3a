/**
 * One flow while it runs: its topics kept up to date on both sides, its lanes, its lag. Ends when it is told to
 * stop, or fails with what is in the way; whoever supervises it starts it anew (service.ts).
 */
import { Clock, Deferred, Effect, type Scope } from "effect"
import { sourceSettings, targetSettings } from "../config/clients.ts"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { FlowMetrics } from "../metrics/flowMetrics.ts"
import type { BindingStopped } from "../txn/binding.ts"
import { doneEnd } from "../txn/ledger/positions.ts"
import type { LedgerMemory } from "../txn/ledger/worker.ts"
import type { WireError } from "../wire/errors.ts"
import { type ControlLog, makeControlLog } from "./control/controlLog.ts"
import { standingsOf } from "./control/groupSync.ts"
import { type Leadership, makeLeadership } from "./control/leader.ts"
import { runControlTasks } from "./controlTasks.ts"
import type { Source } from "./delivery.ts"
import { FlowStopped, type GuaranteeChanged } from "./errors.ts"
import { connectFlow, type FlowClusters, namingOf, prepareSource } from "./flowSetup.ts"
import { type Chosen, openGuarantee, watchGuarantee } from "./flowGuarantee.ts"
import { FlowTopics } from "./flowTopics.ts"
import { type Cut, cutOf } from "./gathering.ts"
import { GapWatch } from "./gaps.ts"
import { type LaneError, runLane } from "./lane.ts"
import type { Place } from "./laneContext.ts"
import { type LedgerSide, openLedgerSide } from "./ledger/side.ts"
import { stopsForGood } from "./ledgerWatch.ts"
import { Outputs } from "./outputs.ts"
import { ownGroups } from "./ownGroups.ts"
import { runTasks } from "./control/tasks.ts"
import { type FlowOffsets, openFlowOffsets } from "./offsets/flowOffsets.ts"
import { tellOpenTransactions } from "./openTransactions.ts"
import { needsProvenance, withProvenance } from "./provenance.ts"
import { type Repairs, withRepairEvents, withRepairs } from "./repair/repairs.ts"
import { awaitGoal, observeLag, type ProgressParts, takeGoal } from "./progress.ts"
import { type Log, makeLog, makeReport, makeTrouble } from "./report.ts"
import { returns } from "./returning.ts"
import { type Assignments, makeAssignments } from "./sources/assignments.ts"
import { type LaneSourceError, makeLaneSource } from "./sources/laneSource.ts"
import type { FlowState } from "./state.ts"
import { tellGap, tellTruncation } from "./tellGaps.ts"
import { TruncationWatch } from "./truncation.ts"
import { buildChain } from "./transforms/build.ts"
import type { TransformChain } from "./transforms/chain.ts"
import { type CaughtUp, untilPlaced } from "./unplaced.ts"

/** What outlives one run of a flow. */
export interface FlowHandle {
  readonly flow: ResolvedFlow
  readonly state: FlowState
  readonly metrics: FlowMetrics
  readonly stopping: () => boolean
  /** Non-null: the run is to end when its goal is reached. */
  readonly caughtUp: CaughtUp | null
  /** Completed at the first successful start. */
  readonly started: Deferred.Deferred<void>
  readonly ledgerMemory: LedgerMemory
}

interface Running {
  readonly config: ResolvedConfig
  readonly handle: FlowHandle
  readonly clusters: FlowClusters
  readonly topics: FlowTopics
  readonly outputs: Outputs
  readonly cut: Cut
  readonly chain: TransformChain | null
  /** For topics whose names do not tell where their records are from. */
  readonly markingChain: TransformChain
  readonly leadership: Leadership
  /** The control tasks, for as long as the flow runs. */
  readonly controlTasks: Effect.Effect<never>
  readonly chosen: Chosen
  /** Completed when another binding is to be in force. */
  readonly rebind: Deferred.Deferred<GuaranteeChanged>
  readonly deliveryLimit: number
  readonly log: Log
  readonly notes: ControlLog
  readonly gaps: GapWatch
  readonly truncations: TruncationWatch | null
  readonly openTransactions: ReturnType<typeof tellOpenTransactions>
  readonly sources: Set<Source<LaneSourceError>>
  /** Completed with the reason when a gap is to end the flow. */
  readonly gap: Deferred.Deferred<string>
  readonly assignments: Assignments
  readonly trouble: ReturnType<typeof makeTrouble>
  /** Set before the first lane starts. */
  offsets: FlowOffsets | null
  /** Set before the first lane starts, where a ledger knows what was mirrored and a share group may give records up. */
  repairs: Repairs | null
  startAt: LedgerSide["startAt"]
  ledger: LedgerSide["ledger"]
}

/** Keeps topics up to date. A refresh that fails is said and tried again at the next interval. */
const control = (running: Running): Effect.Effect<never, LaneSourceError> =>
  Effect.gen(function*() {
    while (true) {
      yield* Effect.sleep(running.handle.flow.refreshTopicsIntervalMs)
      const changed = yield* running.topics.refresh.pipe(Effect.catch((error) => {
        running.handle.state.stall("refresh", `topics cannot be refreshed: ${error.message}`)
        return Effect.as(Effect.logWarning(`topics cannot be refreshed: ${error.message}`), null)
      }))
      if (changed !== null) running.handle.state.stall("refresh", null)
      if (changed === true) { for (const source of running.sources) yield* source.subscribe(running.topics.names) }
    }
  })

const LAG_INTERVAL_MS = 5_000

const watchLag = (parts: ProgressParts): Effect.Effect<never> =>
  Effect.gen(function*() {
    while (true) {
      yield* Effect.catch(observeLag(parts), (error) => Effect.logDebug(`lag is not known now: ${error.message}`))
      yield* Effect.sleep(LAG_INTERVAL_MS)
    }
  })

const placeOf = (
  { chain, clusters, config, handle, markingChain, outputs, topics }: Running,
  topic: string,
  partition: number,
  topicId: string
): Effect.Effect<Place, WireError> =>
  Effect.gen(function*() {
    const place = topics.placeOf(topic, topicId)
    if (!place.ok) return place
    const problem = yield* outputs.ensure(place.target, topic, partition)
    if (problem !== null) return { ok: false, reason: `the target has no place for it: ${problem}` } as const
    const ordered = handle.flow.groupProtocol.value === "consumer"
    const rulesChain = needsProvenance(config, handle.flow, clusters, topic) ? markingChain : chain
    return { ok: true, rules: { targetTopic: place.target, chain: rulesChain, ordered } } as const
  })

const lane = (running: Running, n: number): Effect.Effect<void, LaneError | LaneSourceError> =>
  Effect.scoped(Effect.gen(function*() {
    const { handle, log } = running
    const name = `${handle.flow.name}-${n}`
    const source = yield* makeLaneSource({
      cluster: running.clusters.source,
      settings: sourceSettings(running.config, handle.flow),
      flow: handle.flow,
      lane: name,
      topics: running.topics.names,
      deliveryLimit: running.deliveryLimit,
      targetOf: (topic) => running.topics.targetOf(topic),
      metrics: handle.metrics,
      assignments: running.assignments,
      log,
      onTrouble: running.trouble,
      ...(running.startAt === null ? {} : { startAt: running.startAt }),
      onGap: (reason) => Deferred.doneUnsafe(running.gap, Effect.succeed(reason))
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => running.sources.add(source)),
      () => Effect.sync(() => running.sources.delete(source))
    )
    // After the source, so closed before it: a transaction ends before what it stands for is given back.
    const binding = yield* running.chosen.candidate.make({ name, member: () => source.member?.() ?? null })
    const notes = running.offsets?.laneNotes() ?? null
    const events = makeReport(handle.state, handle.metrics, (topic) => running.topics.targetOf(topic), log)
    yield* runLane({
      source: n === 0 && running.repairs !== null ? withRepairs(source, running.repairs) : source,
      binding,
      cut: running.cut,
      placeOf: (topic, partition, topicId) => placeOf(running, topic, partition, topicId),
      ensureOutput: (topic, sourceTopic, partition) => running.outputs.ensure(topic, sourceTopic, partition),
      missing: (topic) => running.outputs.missing(topic),
      deadLetter: running.outputs.letters(n),
      ...(notes === null ? {} : { notes }),
      onRecordRefused: handle.flow.onRecordRefused,
      errorsTolerance: handle.flow.errorsTolerance,
      events: running.repairs === null ? events : withRepairEvents(events, running.repairs),
      stopping: () => handle.stopping() || Deferred.isDoneUnsafe(running.gap) || Deferred.isDoneUnsafe(running.rebind)
    })
  })).pipe(Effect.annotateLogs({ lane: n }))

const start = (config: ResolvedConfig, handle: FlowHandle) =>
  Effect.gen(function*() {
    const { flow } = handle
    const log = yield* makeLog
    handle.state.begin()
    yield* Effect.logInfo(
      `reads "${flow.source}" through the ${flow.groupProtocol.value} group ${flow.groupId}, as ${flow.groupProtocol.origin} says; the progress of a share group and of a consumer group are separate`
    )
    const clusters = yield* connectFlow(config, flow)
    const chain = yield* buildChain(flow.transforms)
    const chosen = yield* openGuarantee(config, handle, clusters, log)
    const deliveryLimit = yield* prepareSource(clusters.source, flow, { info: Effect.logInfo, warn: Effect.logWarning })
    const gaps = new GapWatch()
    const naming = namingOf(config, flow, clusters)
    const notes = yield* makeControlLog({ ...clusters, flow: flow.name, log })
    const leadership = yield* makeLeadership({ cluster: clusters.target, flow: flow.name, log })
    const topics = new FlowTopics({
      flow,
      clusters,
      naming,
      notes,
      leads: leadership.leads,
      state: handle.state,
      log,
      onForget: ({ source }) => {
        handle.state.forgetTopic(source)
        gaps.forgetTopic(source)
      }
    })
    const outputs = new Outputs({ flow, topics, targetAdmin: clusters.targetAdmin, log })
    const running: Running = {
      config,
      handle,
      clusters,
      topics,
      outputs,
      cut: yield* cutOf(flow, targetSettings(config, flow)),
      chain,
      markingChain: withProvenance(chain, clusters, () => handle.metrics.loopsPrevented(1)),
      leadership,
      controlTasks: runControlTasks({ ...handle, config, clusters, naming, notes, topics, leadership, log }),
      chosen,
      rebind: yield* Deferred.make<GuaranteeChanged>(),
      deliveryLimit,
      log,
      gaps,
      notes,
      // A consumer group without a ledger goes by its own position, and meets what was cut by itself.
      truncations: flow.groupProtocol.value === "share" || chosen.candidate.name === "ledger"
        ? new TruncationWatch(clusters.source)
        : null,
      openTransactions: tellOpenTransactions(
        handle.state,
        log,
        (task, held) => handle.metrics.controlPass(task, 0, held)
      ),
      sources: new Set(),
      gap: yield* Deferred.make<string>(),
      assignments: makeAssignments(handle.metrics.partitionCount),
      trouble: makeTrouble(handle.state, handle.metrics, (topic) => topics.targetOf(topic), log),
      offsets: null,
      repairs: null,
      startAt: null,
      ledger: null
    }
    const problem = yield* outputs.ensureLetters
    if (problem !== null) {
      return yield* new FlowStopped({
        what: `the dead-letter topic ${flow.deadLetter?.topic} cannot be made: ${problem}`
      })
    }
    yield* topics.refresh
    return running
  })

const progressParts = (running: Running): ProgressParts => ({
  cluster: running.clusters.source,
  groupId: running.handle.flow.groupId,
  mode: running.handle.flow.groupProtocol.value,
  committed: running.handle.flow.isolationLevel === "read_committed",
  state: running.handle.state,
  topics: () => running.topics.list,
  onLag: (topic, partition, lag) => running.handle.metrics.lag(running.topics.targetOf(topic), partition, lag),
  gaps: running.gaps,
  onGap: (gap) => tellGap(running, gap),
  truncations: running.truncations,
  doneEnd: (at) => running.ledger === null ? 0 : doneEnd(running.ledger, at),
  onTruncated: (cut) => tellTruncation(running, cut),
  onEnds: running.openTransactions,
  log: running.log
})

/** The first look at where the group stands, before anything is fetched: the group goes on behind a gap with the first fetch. */
const firstLook = (running: Running, parts: ProgressParts): Effect.Effect<void, FlowStopped> =>
  Effect.gen(function*() {
    yield* Effect.catch(observeLag(parts), (error) =>
      Effect.logWarning(`whether the source has dropped records cannot be told now: ${error.message}`))
    if (Deferred.isDoneUnsafe(running.gap)) {
      return yield* new FlowStopped({ what: yield* Deferred.await(running.gap) })
    }
  })

/** What ends the flow while it runs: what is at work may be finished, as at a stop. */
const endWith = <A, E>(running: Running, sign: Deferred.Deferred<A>, error: (sign: A) => E): Effect.Effect<never, E> =>
  Effect.gen(function*() {
    const value = yield* Deferred.await(sign)
    yield* Effect.sleep(running.handle.flow.shutdownTimeoutMs)
    return yield* Effect.fail(error(value))
  })

const stopAtGap = (running: Running): Effect.Effect<never, FlowStopped> =>
  endWith(running, running.gap, (what) => new FlowStopped({ what }))

/** Another binding is to be in force: no transaction is open when the next run begins with it. */
const rebindInTime = (running: Running): Effect.Effect<never, GuaranteeChanged> =>
  Effect.andThen(
    Effect.flatMap(
      watchGuarantee({ ...running, flow: running.handle.flow }),
      (change) => Deferred.succeed(running.rebind, change)
    ),
    endWith(running, running.rebind, (change) => change)
  )

const openLedger = (running: Running): Effect.Effect<LedgerSide, WireError | BindingStopped, Scope.Scope> =>
  openLedgerSide({
    flow: running.handle.flow,
    clusters: running.clusters,
    candidate: running.chosen.candidate,
    topics: () => running.topics.list,
    ownMembers: () => [...running.sources].flatMap((source) => source.member?.()?.memberId ?? []),
    notes: running.notes,
    onRepaired: running.handle.metrics.recordsRepaired,
    log: running.log
  })

const openOffsets = (running: Running): Effect.Effect<FlowOffsets, WireError, Scope.Scope> =>
  openFlowOffsets({
    flow: running.handle.flow,
    clusters: running.clusters,
    guarantee: running.chosen.candidate.guarantee,
    topics: () => running.topics.list,
    bothWays: (topic) => returns(running.config, running.handle.flow, topic),
    ownGroups: () => ownGroups(running.config, running.handle.flow, running.notes.known()),
    log: running.log,
    onGroups: (rows) => running.handle.metrics.groups(standingsOf(rows))
  })

const offsetTasks = (running: Running, { tasks }: FlowOffsets): Effect.Effect<never> => {
  const { handle: { metrics, state }, leadership, log, topics } = running
  if (tasks.length === 0) return Effect.never
  const work = runTasks(tasks, {
    state,
    log,
    changed: topics.changed,
    onPass: (task, { changed, problems }) => metrics.controlPass(task, changed, problems.length)
  })
  return leadership.whileLeading(Effect.ensuring(work, Effect.sync(() => metrics.groups([]))))
}

/** Waits for the first topic; a group of nothing cannot be joined. */
const untilTopics = (running: Running): Effect.Effect<void, WireError> =>
  Effect.gen(function*() {
    if (running.topics.list.length === 0) yield* Effect.logInfo("no topic of the source matches yet")
    while (running.topics.list.length === 0 && !running.handle.stopping()) {
      yield* Effect.sleep(Math.min(1_000, running.handle.flow.refreshTopicsIntervalMs))
      yield* running.topics.refresh
    }
  })

/** Runs the flow until it is told to stop. */
export const runFlow = (
  config: ResolvedConfig,
  handle: FlowHandle
): Effect.Effect<
  void,
  Effect.Error<ReturnType<typeof start>> | LaneError | LaneSourceError | GuaranteeChanged,
  Scope.Scope
> =>
  Effect.gen(function*() {
    const { caughtUp, flow, state } = handle
    const running = yield* start(config, handle)
    const parts = progressParts(running)
    if (caughtUp !== null && caughtUp.goal === null) {
      const { topics } = running
      caughtUp.missed = yield* untilPlaced({ ...handle, refresh: topics.refresh, unplaced: () => topics.unplaced })
      caughtUp.goal = yield* takeGoal(parts)
    }
    yield* firstLook(running, parts)
    state.become("running", null, yield* Clock.currentTimeMillis)
    handle.metrics.running(true)
    yield* Deferred.succeed(handle.started, undefined)
    if (caughtUp?.goal?.size === 0) yield* Deferred.succeed(caughtUp.reached, undefined)
    yield* untilTopics(running)
    if (handle.stopping()) return
    running.offsets = yield* openOffsets(running)
    const ledger = yield* openLedger(running)
    running.repairs = ledger.repairs
    running.startAt = ledger.startAt
    running.ledger = ledger.ledger
    const lanes = Effect.all(Array.from({ length: flow.tasksMax }, (_, n) => lane(running, n)), {
      concurrency: "unbounded",
      discard: true
    })
    const lastLook = Effect.andThen(
      ledger.caughtUp(caughtUp?.goal ?? new Map()),
      running.offsets.settle(running.leadership)
    )
    const goal = caughtUp === null || caughtUp.goal === null
      ? Effect.never
      : Effect.andThen(awaitGoal(parts, caughtUp.goal, caughtUp.reached, lastLook), Effect.never)
    const beside = Effect.all([
      control(running),
      running.controlTasks,
      offsetTasks(running, running.offsets),
      watchLag(parts),
      stopAtGap(running),
      rebindInTime(running),
      goal,
      ledger.beside
    ], {
      concurrency: "unbounded",
      discard: true
    })
    yield* Effect.raceFirst(lanes, beside).pipe(Effect.ensuring(Effect.sync(() => handle.metrics.running(false))))
    if (Deferred.isDoneUnsafe(running.gap)) return yield* new FlowStopped({ what: yield* Deferred.await(running.gap) })
    if (Deferred.isDoneUnsafe(running.rebind) && !handle.stopping()) return yield* yield* Deferred.await(running.rebind)
  }).pipe(Effect.mapError(stopsForGood))
