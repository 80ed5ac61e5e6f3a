/** What a flow needs before its lanes start: connections, a naming, transforms, a guarantee, a group that fits. */
import { Effect, type Scope } from "effect"
import { adminSettings, sourceSettings, targetSettings } from "../config/clients.ts"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import { assertGroupType, type GroupCollisionError } from "../group/groupType.ts"
import { NO_SHARE_GROUPS } from "../share/errors.ts"
import { prepareGroup } from "../share/groupSettings.ts"
import { type BindingChoice, chooseBinding } from "../txn/binding.ts"
import { parseProducerSettings } from "../txn/producerSettings.ts"
import type { Cluster } from "../wire/cluster.ts"
import { makeCluster } from "../wire/clusterClient.ts"
import type { WireError } from "../wire/errors.ts"
import type { SettingsError } from "../wire/settings.ts"
import { bindingCandidates, type BindingHooks } from "./bindings.ts"
import { groupRefusal } from "./control/rights.ts"
import { ClusterUnusable, FlowStopped } from "./errors.ts"
import { makeNaming, type Naming } from "./naming.ts"

export interface FlowClusters {
  readonly source: Cluster
  readonly target: Cluster
  /** For creating topics: admin.override.* may name another principal. */
  readonly targetAdmin: Cluster
  /** Cluster ids: the same where both aliases lead to one cluster. */
  readonly sourceId: string
  readonly targetId: string
}

const hasOverrides = (values: Readonly<Record<string, string>>): boolean => Object.keys(values).length > 0

/** A failure of one end, with its name. */
const reach = <A, E extends { readonly message: string }, R>(
  flow: ResolvedFlow,
  end: "source" | "target",
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, ClusterUnusable, R> =>
  Effect.mapError(work, ({ message }) => new ClusterUnusable({ end, alias: flow[end], what: message }))

/** Connects to both ends and asks each for its id, so that what is wrong with an address or a password shows at once. */
export const connectFlow = (
  config: ResolvedConfig,
  flow: ResolvedFlow
): Effect.Effect<FlowClusters, ClusterUnusable | FlowStopped, Scope.Scope> =>
  Effect.gen(function*() {
    const source = yield* reach(flow, "source", makeCluster(flow.source, sourceSettings(config, flow)))
    const target = yield* reach(flow, "target", makeCluster(flow.target, targetSettings(config, flow)))
    const targetAdmin = hasOverrides(flow.adminOverrides)
      ? yield* reach(flow, "target", makeCluster(flow.target, adminSettings(config, flow, "target")))
      : target
    const sourceId = yield* reach(flow, "source", source.clusterId)
    const targetId = yield* reach(flow, "target", target.clusterId)
    if (sourceId === targetId && flow.replicationPolicy === "identity" && flow.topicMapping.size === 0) {
      return yield* new FlowStopped({
        what:
          `source "${flow.source}" and target "${flow.target}" are the same cluster (${sourceId}): with replication.policy identity each topic would be copied onto itself`
      })
    }
    return { source, target, targetAdmin, sourceId, targetId }
  })

export const namingOf = (
  config: ResolvedConfig,
  flow: ResolvedFlow,
  { sourceId, targetId }: Pick<FlowClusters, "sourceId" | "targetId">
): Naming =>
  makeNaming({
    sameCluster: sourceId === targetId,
    sourceAlias: flow.source,
    targetAlias: flow.target,
    aliases: new Set(config.clusters.keys()),
    policy: flow.replicationPolicy,
    separator: flow.replicationPolicySeparator,
    mapping: flow.topicMapping,
    include: flow.topics,
    exclude: flow.topicsExclude,
    heartbeats: flow.offsets.heartbeatsMirrored
  })

export const chooseGuarantee = (
  config: ResolvedConfig,
  flow: ResolvedFlow,
  clusters: FlowClusters,
  hooks: BindingHooks
): Effect.Effect<BindingChoice, SettingsError> =>
  Effect.flatMap(parseProducerSettings(targetSettings(config, flow)), (settings) =>
    chooseBinding({
      wanted: flow.deliveryGuarantee,
      order: flow.exactlyOnceBindings,
      fallback: flow.exactlyOnceFallback,
      candidates: bindingCandidates(clusters, flow, settings, hooks)
    }))

/** Why each binding that was tried cannot hold, one sentence each. */
export const reasonsOf = (choice: BindingChoice): ReadonlyArray<string> =>
  choice.reasons.map(({ binding, reason }) => `${binding}: ${reason}`)

/** Why a flow under exactly.once.fallback fail does not run. */
export const refusalOf = (choice: BindingChoice): string =>
  `${choice.wanted} cannot be had and exactly.once.fallback is fail: ${reasonsOf(choice).join("; ")}`

/** Where the brokers do not tell the group's limit, the lowest they can have: nothing is given back that could be the last time. */
const LOWEST_DELIVERY_LIMIT = 2
const DELIVERY_LIMIT_KEY = "share.delivery.count.limit"

/** Brokers before 4.0 have none, and a cluster may have them switched off: said before anything is tried with the group. */
const assertShareGroups = (source: Cluster): Effect.Effect<void, WireError | FlowStopped> =>
  Effect.flatMap(
    source.retrying(source.features),
    (features) =>
      (features.get("share.version") ?? 0) > 0 ? Effect.void : Effect.fail(new FlowStopped({ what: NO_SHARE_GROUPS }))
  )

/**
 * Refuses a group of another type, and brings a share group's settings to what a mirror needs. Gives the number of
 * deliveries after which the group gives a record up.
 */
export const prepareSource = (
  source: Cluster,
  flow: ResolvedFlow,
  log: {
    readonly info: (message: string) => Effect.Effect<void>
    readonly warn: (message: string) => Effect.Effect<void>
  }
): Effect.Effect<number, WireError | GroupCollisionError | ClusterUnusable | FlowStopped> =>
  Effect.gen(function*() {
    const mode = flow.groupProtocol.value
    if (mode === "share") yield* assertShareGroups(source)
    // First: without the right the group's type cannot be asked for either.
    const refusal = yield* groupRefusal(source, flow.groupId)
    if (refusal !== null) {
      return yield* new ClusterUnusable({ end: "source", alias: flow.source, what: refusal })
    }
    yield* assertGroupType(source, flow.groupId, mode)
    if (mode === "consumer") return Infinity
    const prepared = yield* prepareGroup({
      cluster: source,
      groupId: flow.groupId,
      autoOffsetReset: flow.autoOffsetReset,
      overrides: { "share.isolation.level": flow.isolationLevel, ...flow.consumerOverrides }
    })
    for (const change of prepared.changes) {
      yield* log.info(`group ${flow.groupId}: ${change.key} set from ${change.from ?? "the default"} to ${change.to}`)
    }
    for (const warning of prepared.warnings) {
      yield* log.warn(
        `group ${flow.groupId}: ${warning.key} is ${
          warning.current ?? "unknown"
        }, not ${warning.wanted}, and cannot be set (${warning.why}): ${warning.danger}`
      )
    }
    return Number(prepared.values.get(DELIVERY_LIMIT_KEY) ?? LOWEST_DELIVERY_LIMIT)
  })
