/**
 * Offsets for people and programs, without a running flow: where a position of the source is on the target, or the
 * other way round, and where groups stand. Reads what the lanes have noted; writes only when it is told to commit.
 */
import { Effect } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { Cluster } from "../wire/cluster.ts"
import { makeControlLog } from "./control/controlLog.ts"
import { positionsOf } from "./control/groupPositions.ts"
import { allGroups, type GroupKind, isActive, moveGroup } from "./control/groups.ts"
import { type GroupOffset, groupFilter, sourceGroups, syncGroups } from "./control/groupSync.ts"
import { isRemote } from "./control/identities.ts"
import { reachableEnds } from "./control/logOffsets.ts"
import { partitionName } from "./control/offsets.ts"
import { findTopic } from "./control/smallTopic.ts"
import { placedTopics } from "./control/topicPass.ts"
import { type MirroredTopic, selectTopics, settleDoubts } from "./control/topics.ts"
import { FlowStopped } from "./errors.ts"
import { silentHooks } from "./bindings.ts"
import { chooseGuarantee, connectFlow, type FlowClusters, namingOf, refusalOf } from "./flowSetup.ts"
import { floorRule } from "./offsets/flowOffsets.ts"
import type { Translation } from "./offsets/offsetMap.ts"
import { offsetsTopicName, openOffsetsTopic } from "./offsets/offsetsTopic.ts"
import { Translator } from "./offsets/translator.ts"
import { ownGroups } from "./ownGroups.ts"
import { returns } from "./returning.ts"

export interface OffsetRow {
  readonly flow: string
  /** null: asked for a position, not for a group. */
  readonly group: string | null
  readonly kind: GroupKind | null
  readonly sourceTopic: string
  readonly sourcePartition: number
  /** null: not known. */
  readonly sourceOffset: number | null
  readonly targetTopic: string
  readonly targetPartition: number
  readonly targetOffset: number | null
  /** true: to the record. */
  readonly exact: boolean
  /** What the group has committed where the answer is for; null: nothing, or not asked. */
  readonly committed: number | null
  readonly state: string
  readonly reason: string | null
}

export type OffsetsQuestion =
  | { readonly kind: "list"; readonly group: string | null }
  | {
    readonly kind: "position"
    /** Of the source; of the target with `reverse`. */
    readonly topic: string
    readonly partition: number
    readonly offset: number
    readonly reverse: boolean
  }
  /** `reverse`: from where the group stands on the target to the source. `commit`: writes it, where the group has no members. */
  | { readonly kind: "group"; readonly group: string; readonly reverse: boolean; readonly commit: boolean }

type PositionQuestion = Extract<OffsetsQuestion, { readonly kind: "position" }>

export interface OffsetsRequest {
  /** The flow's name; null: the only one that is enabled. */
  readonly flow: string | null
  readonly question: OffsetsQuestion
}

interface Opened {
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly topics: ReadonlyArray<MirroredTopic>
  readonly translator: Translator
  /** Groups of the source that are onceover's. */
  readonly own: ReadonlySet<string>
}

/** Without a name: the only one, or the only one that is enabled. */
const flowOf = (config: ResolvedConfig, name: string | null): Effect.Effect<ResolvedFlow, FlowStopped> => {
  const names = config.flows.map((flow) => flow.name)
  const enabled = config.flows.filter((flow) => flow.enabled)
  const [only, another] = enabled.length === 0 ? config.flows : enabled
  const found = name !== null
    ? config.flows.find((flow) => flow.name === name)
    : another === undefined
    ? only
    : undefined
  if (found !== undefined) return Effect.succeed(found)
  return Effect.fail(
    new FlowStopped({
      what: name === null
        ? `the configuration has ${names.length} flows; name one with --flow: ${names.join(", ")}`
        : `there is no flow "${name}"; allowed: ${names.join(", ")}`
    })
  )
}

/** Topics of the flow as they are placed, and onceover's own groups, by what the flow has noted. */
const placesOf = (config: ResolvedConfig, flow: ResolvedFlow, clusters: FlowClusters) =>
  Effect.gen(function*() {
    const { source, target } = clusters
    const notes = yield* makeControlLog({ ...clusters, flow: flow.name, log: () => undefined, lookOnly: true })
    const known = yield* notes.read
    const selected = selectTopics(yield* source.retrying(source.allTopics), namingOf(config, flow, clusters))
    const { topics } = yield* settleDoubts(target, selected, (topic) => isRemote(known, topic))
    const placed = yield* placedTopics({ target, notes, control: flow.control }, topics)
    return {
      own: ownGroups(config, flow, known),
      topics: placed.flatMap(({ standing, topic }) =>
        standing.kind === "paused" ? [] : [{ ...topic, target: standing.target }]
      )
    }
  })

const open = (config: ResolvedConfig, name: string | null) =>
  Effect.gen(function*() {
    const flow = yield* flowOf(config, name)
    const clusters = yield* connectFlow(config, flow)
    const choice = yield* chooseGuarantee(config, flow, clusters, {
      ...silentHooks,
      log: () => {},
      instance: "offsets"
    })
    if (choice.effective === null) return yield* new FlowStopped({ what: refusalOf(choice) })
    const topicName = offsetsTopicName(flow.name)
    if ((yield* findTopic(clusters.target, topicName)) === undefined) {
      return yield* new FlowStopped({
        what:
          `flow ${flow.name} has no map of offsets: "${flow.target}" has no topic ${topicName}. It is made when the flow runs, unless offset.map.enabled is false`
      })
    }
    const { own, topics } = yield* placesOf(config, flow, clusters)
    const translator = new Translator({
      ...clusters,
      offsets: yield* openOffsetsTopic(clusters.target, flow.name, clusters.sourceId),
      rule: floorRule(flow.groupProtocol.value, choice.effective),
      transactional: choice.effective === "exactly-once",
      groupId: flow.groupId,
      topics: () => topics,
      bothWays: (topic) => returns(config, flow, topic)
    })
    return { flow, clusters, own, topics, translator } satisfies Opened
  })

const offsetOf = (translation: Translation): Pick<OffsetRow, "exact" | "reason"> & { readonly offset: number | null } =>
  translation.kind === "unknown"
    ? { offset: null, exact: false, reason: translation.reason }
    : translation.kind === "about"
    ? {
      offset: translation.offset,
      exact: false,
      reason: "at the latest: the places of some records are not kept to the record"
    }
    : { offset: translation.offset, exact: true, reason: null }

/** Why no reader can stand at an offset: its log ends before it. null: it does not. */
const beyondEnd = (cluster: Cluster, topic: MirroredTopic, partition: number, offset: number) =>
  Effect.gen(function*() {
    const name = partitionName(topic.source, partition)
    const end = (yield* reachableEnds(cluster, [topic], false)).found.get(name)
    if (end === undefined || offset <= end) return null
    return `${name} on "${cluster.name}" ends at offset ${end}, before the one that is asked for`
  })

const behindEnd = <Row extends Pick<OffsetRow, "exact" | "reason">>(row: Row, beyond: string | null): Row =>
  beyond === null ? row : { ...row, exact: false, reason: row.reason === null ? beyond : `${beyond}; ${row.reason}` }

/** The topic is none of this side; where it is one of the other side, that is what was meant. */
const wrongTopic = ({ clusters, flow, topics }: Opened, { partition, reverse, topic }: PositionQuestion) => {
  const name = `${topic}-${partition}`
  const other = topics.find((one) => (reverse ? one.source : one.target) === topic && one.source !== one.target)
  if (reverse) {
    const meant = other === undefined ? "" : `; --reverse takes the topic on "${clusters.target.name}": ${other.target}`
    return new FlowStopped({ what: `flow ${flow.name} has mirrored nothing into ${name}${meant}` })
  }
  const meant = other === undefined
    ? ""
    : `; the topic on "${clusters.source.name}" is ${other.source}, and --reverse goes from ${topic} to it`
  return new FlowStopped({ what: `flow ${flow.name} does not mirror ${name}${meant}` })
}

const POSITION = { group: null, kind: null, committed: null, state: "" } as const

const positionBack = (opened: Opened, asked: PositionQuestion) =>
  Effect.gen(function*() {
    const { clusters, flow, translator } = opened
    const { offset, partition, topic } = asked
    const back = translator.translateBack(topic, partition, offset)
    if (back === null) return yield* wrongTopic(opened, asked)
    const there = { source: topic, sourceId: "", target: topic, partitions: partition + 1 }
    const beyond = yield* beyondEnd(clusters.target, there, partition, offset)
    const { exact, offset: sourceOffset, reason } = offsetOf(back.translation)
    const row: OffsetRow = {
      ...POSITION,
      flow: flow.name,
      sourceTopic: back.topic,
      sourcePartition: back.partition,
      sourceOffset,
      targetTopic: topic,
      targetPartition: partition,
      targetOffset: offset,
      exact,
      reason
    }
    return [behindEnd(row, beyond)]
  })

const position = (opened: Opened, asked: PositionQuestion) =>
  Effect.gen(function*() {
    const { clusters, flow, topics, translator } = opened
    const { offset, partition, topic } = asked
    const found = topics.find((one) => one.source === topic && partition < one.partitions)
    if (found === undefined) return yield* wrongTopic(opened, asked)
    const beyond = yield* beyondEnd(clusters.source, found, partition, offset)
    return translator.translate(found, partition, offset).map((to): OffsetRow => {
      const { exact, offset: targetOffset, reason } = offsetOf(to.translation)
      const row: OffsetRow = {
        ...POSITION,
        flow: flow.name,
        sourceTopic: topic,
        sourcePartition: partition,
        sourceOffset: offset,
        targetTopic: to.topic,
        targetPartition: to.partition,
        targetOffset,
        exact,
        reason
      }
      return behindEnd(row, beyond)
    })
  })

const asRow = (flow: string, row: GroupOffset): OffsetRow => ({
  flow,
  group: row.group,
  kind: row.kind,
  sourceTopic: row.topic,
  sourcePartition: row.partition,
  sourceOffset: row.position,
  targetTopic: row.targetTopic,
  targetPartition: row.targetPartition,
  targetOffset: row.targetPosition,
  exact: row.state !== "unmapped",
  committed: row.targetCurrent,
  state: row.state,
  reason: row.reason
})

const groups = (opened: Opened, only: string | null, write: boolean) =>
  Effect.gen(function*() {
    const { clusters, flow, own, topics, translator } = opened
    const matches = groupFilter(flow.offsets.groups, flow.offsets.groupsExclude, () => own)
    const sync = {
      ...clusters,
      translator,
      topics: () => topics,
      matches: (id: string) => only === null ? matches(id) : id === only
    }
    const found = yield* sourceGroups(sync)
    if (only !== null && found.length === 0) {
      return yield* new FlowStopped({ what: `"${flow.source}" has no group ${only} that reads topics` })
    }
    return (yield* syncGroups(sync, found, write)).map((row) => asRow(flow.name, row))
  })

/** Failback: from where a group stands on the target to the source. */
const groupBack = (opened: Opened, group: string, commit: boolean) =>
  Effect.gen(function*() {
    const { clusters: { source, target }, flow, translator } = opened
    const kind = (yield* allGroups(target)).get(group)?.kind
    if (kind === undefined || kind === "other") {
      return yield* new FlowStopped({ what: `"${flow.target}" has no group ${group} that reads topics` })
    }
    const positions = yield* positionsOf(target, group, kind)
    yield* translator.refresh
    const current = yield* positionsOf(source, group, kind)
    const rows = [...positions.values()].flatMap((at): ReadonlyArray<OffsetRow & { readonly metadata: string }> => {
      const back = translator.translateBack(at.topic, at.partition, at.offset)
      if (back === null) return []
      const { exact, offset, reason } = offsetOf(back.translation)
      const committed = current.get(partitionName(back.topic, back.partition))?.offset ?? null
      return [{
        flow: flow.name,
        group,
        kind,
        sourceTopic: back.topic,
        sourcePartition: back.partition,
        sourceOffset: offset,
        targetTopic: at.topic,
        targetPartition: at.partition,
        targetOffset: at.offset,
        exact,
        committed,
        state: offset === null ? "unmapped" : committed !== null && committed >= offset ? "synced" : "behind",
        reason,
        metadata: at.metadata
      }]
    })
    const moves = rows.filter((row) => row.state === "behind" && row.exact).map((row) => ({
      topic: row.sourceTopic,
      partition: row.sourcePartition,
      offset: row.sourceOffset ?? 0,
      metadata: row.metadata
    }))
    const moved = commit ? yield* moveGroup(source, group, kind, moves) : new Map<string, never>()
    return rows.map(({ metadata: _, ...row }): OffsetRow => {
      const error = moved.get(partitionName(row.sourceTopic, row.sourcePartition))
      if (error === undefined) return row
      if (error === null) return { ...row, state: "synced" }
      return isActive(error)
        ? { ...row, state: "active", reason: `the group has members on "${flow.source}"` }
        : { ...row, state: "failed", reason: error.message }
    })
  })

/** Answers one question; fails with a sentence. */
export const offsetsOf = (
  config: ResolvedConfig,
  { flow, question }: OffsetsRequest
): Effect.Effect<ReadonlyArray<OffsetRow>, { readonly message: string }> =>
  Effect.scoped(Effect.gen(function*() {
    const opened = yield* open(config, flow)
    switch (question.kind) {
      case "list":
        return yield* groups(opened, question.group, false)
      case "group":
        return question.reverse
          ? yield* groupBack(opened, question.group, question.commit)
          : yield* groups(opened, question.group, question.commit)
      case "position":
        yield* opened.translator.refresh
        return question.reverse ? yield* positionBack(opened, question) : yield* position(opened, question)
    }
  }))
