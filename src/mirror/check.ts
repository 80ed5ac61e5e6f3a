/** `onceover check`: what would run, with which guarantee and why. Changes nothing anywhere. */
import { Effect, type Scope } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import { assertGroupType } from "../group/groupType.ts"
import { NO_SHARE_GROUPS } from "../share/errors.ts"
import { prepareGroup } from "../share/groupSettings.ts"
import type { Cluster, TopicMetadata } from "../wire/cluster.ts"
import { makeCluster } from "../wire/clusterClient.ts"
import type { WireError } from "../wire/errors.ts"
import { checkControl } from "./checkControl.ts"
import { makeControlLog } from "./control/controlLog.ts"
import { isRemote } from "./control/identities.ts"
import type { MissingRight } from "./control/missingRights.ts"
import { groupRefusal, uncreatable, unreadable, unwritable } from "./control/rights.ts"
import { placedTopics } from "./control/topicPass.ts"
import { type MirroredTopic, selectTopics, settleDoubts } from "./control/topics.ts"
import { silentHooks } from "./bindings.ts"
import { chooseGuarantee, connectFlow, type FlowClusters, namingOf, reasonsOf, refusalOf } from "./flowSetup.ts"
import { checkLedger } from "./ledger/checkLedger.ts"
import { buildChain } from "./transforms/build.ts"

export interface CheckedTopic {
  readonly source: string
  readonly target: string
  readonly partitions: number
  /** On the target, now. */
  readonly exists: boolean
}

export interface CheckedFlow {
  readonly name: string
  readonly enabled: boolean
  readonly source: string
  readonly target: string
  readonly mode: string
  readonly groupId: string
  readonly guarantee: {
    readonly wanted: string
    readonly effective: string | null
    readonly binding: string | null
    readonly reasons: ReadonlyArray<string>
  }
  readonly topics: ReadonlyArray<CheckedTopic>
  /** Rights that features of the flow lack; it would run without them. */
  readonly rights: ReadonlyArray<MissingRight>
  /** What a run would change on the target beside topics: settings and rights. */
  readonly changes: ReadonlyArray<string>
  readonly problems: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
}

export interface CheckedCluster {
  readonly alias: string
  readonly clusterId: string | null
  readonly brokers: number
  readonly features: Readonly<Record<string, number>>
}

export interface CheckReport {
  readonly ok: boolean
  readonly clusters: ReadonlyArray<CheckedCluster>
  readonly flows: ReadonlyArray<CheckedFlow>
}

const unreached = (alias: string): CheckedCluster => ({ alias, clusterId: null, brokers: 0, features: {} })

const checkCluster = (config: ResolvedConfig, alias: string): Effect.Effect<CheckedCluster> =>
  Effect.scoped(Effect.gen(function*() {
    const cluster = yield* makeCluster(alias, config.clusters.get(alias)?.settings ?? {})
    return {
      alias,
      clusterId: yield* cluster.clusterId,
      brokers: (yield* cluster.brokers).length,
      features: Object.fromEntries(yield* cluster.features)
    }
  })).pipe(Effect.catch(() => Effect.succeed(unreached(alias))))

const shareWarnings = (source: Cluster, flow: ResolvedFlow): Effect.Effect<ReadonlyArray<string>, WireError> =>
  Effect.gen(function*() {
    const prepared = yield* prepareGroup({
      cluster: source,
      groupId: flow.groupId,
      autoOffsetReset: flow.autoOffsetReset,
      overrides: { "share.isolation.level": flow.isolationLevel, ...flow.consumerOverrides },
      mode: "validate"
    })
    return [
      ...prepared.changes.map((change) =>
        `group ${flow.groupId}: ${change.key} would be set from ${change.from ?? "the default"} to ${change.to}`
      ),
      ...prepared.warnings.map((warning) =>
        `group ${flow.groupId}: ${warning.key} cannot be set (${warning.why}): ${warning.danger}`
      )
    ]
  })

const SHARE_FEATURE = "share.version"

/** Partitions that stand still until a broker leads them again. */
const leaderless = (alias: string, topics: Iterable<TopicMetadata>): ReadonlyArray<string> =>
  [...topics].flatMap(({ name, partitions }) => {
    const without = partitions.filter(({ leader }) => leader < 0).map(({ partition }) => `${name}-${partition}`)
    return without.length === 0
      ? []
      : [`no broker of "${alias}" leads ${without.join(", ")} now: it would wait for one`]
  })

/** Topics that would be left out or stand still, and why: the others would be mirrored all the same. */
const topicWarnings = (
  { source, target, targetAdmin }: FlowClusters,
  flow: ResolvedFlow,
  topics: ReadonlyArray<MirroredTopic>,
  exists: (target: string) => boolean
): Effect.Effect<ReadonlyArray<string>, WireError> =>
  Effect.gen(function*() {
    const missing = topics.filter((topic) => !exists(topic.target))
    const wishes = missing.map((topic) => ({ name: topic.target, partitions: topic.partitions }))
    const closed = yield* unreadable(source, topics.map((topic) => topic.source))
    const sealed = yield* unwritable(target, topics.map((topic) => topic.target).filter(exists))
    const refused = yield* uncreatable(targetAdmin, wishes, flow.replicationFactor)
    return [
      ...closed.map((topic) => `topic ${topic} could not be read: the principal may not READ it on "${flow.source}"`),
      ...sealed.map((topic) =>
        `topic ${topic} could not be written: the principal may not WRITE it on "${flow.target}"`
      ),
      ...[...refused].map(([topic, reason]) => `topic ${topic} could not be created on "${flow.target}": ${reason}`)
    ]
  })

const examine = (config: ResolvedConfig, flow: ResolvedFlow, warnings: Array<string>, problems: Array<string>) =>
  Effect.gen(function*() {
    const clusters = yield* connectFlow(config, flow)
    const { source, target } = clusters
    yield* buildChain(flow.transforms)
    const choice = yield* chooseGuarantee(config, flow, clusters, {
      ...silentHooks,
      log: () => {},
      instance: "check"
    })
    const reasons = reasonsOf(choice)
    if (choice.effective === null) problems.push(refusalOf(choice))
    else if (choice.effective !== choice.wanted) {
      warnings.push(`${choice.wanted} is wanted, ${choice.effective} would be in force: ${reasons.join("; ")}`)
    }
    // First: without the right the group's type cannot be asked for either.
    const ledger = yield* checkLedger({ flow, source, target, binding: choice.candidate?.name ?? null })
    warnings.push(...ledger.warnings)
    problems.push(...ledger.problems)
    const refusal = yield* groupRefusal(source, flow.groupId)
    if (refusal !== null) problems.push(refusal)
    else yield* assertGroupType(source, flow.groupId, flow.groupProtocol.value)
    if (flow.groupProtocol.value === "share") {
      if (((yield* source.features).get(SHARE_FEATURE) ?? 0) === 0) {
        problems.push(NO_SHARE_GROUPS)
      } else warnings.push(...(yield* shareWarnings(source, flow)))
    }
    const naming = namingOf(config, flow, clusters)
    const notes = yield* makeControlLog({ ...clusters, flow: flow.name, log: () => undefined, lookOnly: true })
    const known = yield* notes.read
    const onSource = yield* source.retrying(source.allTopics)
    const selected = selectTopics(onSource, naming)
    const { leftOut, topics: named } = yield* settleDoubts(target, selected, (topic) => isRemote(known, topic))
    const topics: Array<MirroredTopic> = []
    for (const { standing, topic } of yield* placedTopics({ target, notes, control: flow.control }, named)) {
      if (standing.kind === "paused") warnings.push(standing.reason)
      else topics.push({ ...topic, target: standing.target })
      if (standing.kind === "recreated") warnings.push(standing.says)
    }
    for (const { reason, topic } of leftOut) warnings.push(`topic ${topic} is not mirrored: ${reason}`)
    if (topics.length === 0) warnings.push("no topic of the source matches now")
    const there: ReadonlyMap<string, TopicMetadata> = topics.length === 0
      ? new Map()
      : yield* target.retrying(target.topics(topics.map((t) => t.target)))
    warnings.push(...(yield* topicWarnings(clusters, flow, topics, (name) => there.has(name))))
    const mirrored = new Set(topics.map((topic) => topic.source))
    warnings.push(
      ...leaderless(flow.source, onSource.filter(({ name }) => mirrored.has(name))),
      ...leaderless(flow.target, there.values())
    )
    const exists = (name: string): boolean => there.has(name)
    const control = yield* checkControl({
      config,
      flow,
      clusters,
      naming,
      notes,
      topics,
      guarantee: choice.effective,
      exists
    })
    warnings.push(...control.problems)
    return {
      rights: control.rights,
      changes: control.changes,
      guarantee: {
        wanted: choice.wanted,
        effective: choice.effective,
        binding: choice.candidate?.name ?? null,
        reasons
      },
      topics: topics.map((t) => ({
        source: t.source,
        target: t.target,
        partitions: t.partitions,
        exists: there.has(t.target)
      }))
    }
  })

const checkFlow = (config: ResolvedConfig, flow: ResolvedFlow): Effect.Effect<CheckedFlow> => {
  const warnings: Array<string> = []
  const problems: Array<string> = []
  const head = {
    name: flow.name,
    enabled: flow.enabled,
    source: flow.source,
    target: flow.target,
    mode: flow.groupProtocol.value,
    groupId: flow.groupId
  }
  const nothing = {
    guarantee: { wanted: flow.deliveryGuarantee, effective: null, binding: null, reasons: [] },
    topics: [],
    rights: [],
    changes: []
  }
  if (!flow.enabled) {
    return Effect.succeed({ ...head, ...nothing, problems, warnings: ["enabled is false: it would not run"] })
  }
  const examined: Effect.Effect<Pick<CheckedFlow, "guarantee" | "topics" | "rights" | "changes">, never, Scope.Scope> =
    Effect.catch(
      examine(config, flow, warnings, problems),
      (error) =>
        Effect.sync(() => {
          problems.push(error.message)
          return nothing
        })
    )
  return Effect.map(Effect.scoped(examined), (found) => ({ ...head, ...found, problems, warnings }))
}

/** Looks at everything `run` would use. Never fails: what is wrong is in the report. */
export const checkService = (config: ResolvedConfig): Effect.Effect<CheckReport> =>
  Effect.gen(function*() {
    const clusters = yield* Effect.forEach([...config.clusters.keys()], (alias) => checkCluster(config, alias), {
      concurrency: "unbounded"
    })
    const flows = yield* Effect.forEach(config.flows, (flow) => checkFlow(config, flow), { concurrency: 4 })
    return { ok: flows.every((flow) => flow.problems.length === 0), clusters, flows }
  })
