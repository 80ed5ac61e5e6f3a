/** Which partitions of a flow are compared, and between which offsets. */
import { Effect, Random } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../../config/types.ts"
import type { Cluster, TopicMetadata } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { describeTopicSettings } from "../control/describeSettings.ts"
import { endOffsets, offsetsAtTime, startOffsets } from "../control/logOffsets.ts"
import { partitionName } from "../control/offsets.ts"
import type { MirroredTopic } from "../control/topics.ts"
import type { FlowClusters } from "../flowSetup.ts"
import { needsProvenance, withProvenance } from "../provenance.ts"
import type { TransformChain } from "../transforms/chain.ts"
import type { Edge, VerifyOptions } from "./options.ts"
import type { Sides, SourcePart, TargetPart, Unit } from "./places.ts"
import { settle, settledTarget } from "./settle.ts"

type Offsets = ReadonlyMap<string, number>

export interface Planning {
  readonly config: ResolvedConfig
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly topics: ReadonlyArray<MirroredTopic>
  readonly chain: TransformChain | null
  readonly options: VerifyOptions
  readonly onWait: (what: string | null) => void
}

/** Transforms that can give a record another topic. */
const ROUTERS = new Set(["RegexRouter", "module"])
export const isRouted = (flow: ResolvedFlow): boolean => flow.transforms.some(({ type }) => ROUTERS.has(type))

const edgeOffsets = (
  source: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  edge: Edge | null
): Effect.Effect<(name: string) => number | null, WireError> => {
  if (edge === null) return Effect.succeed(() => null)
  if ("offset" in edge) return Effect.succeed(() => edge.offset)
  return Effect.map(offsetsAtTime(source, topics, edge.timeMs), (found) => (name) => {
    const offset = found.get(name)
    // -1: no record is that late.
    return offset === undefined ? null : offset < 0 ? Infinity : offset
  })
}

const chosenPartitions = (count: number, sample: number | null): Effect.Effect<ReadonlyArray<number>> => {
  const all = Array.from({ length: count }, (_, partition) => partition)
  if (sample === null || sample >= count) return Effect.succeed(all)
  return Effect.map(Random.shuffle(all), (shuffled) => shuffled.slice(0, sample).toSorted((a, b) => a - b))
}

interface Ends {
  readonly starts: Offsets
  readonly required: Offsets
  readonly optional: Offsets
  readonly from: (name: string) => number | null
  readonly to: (name: string) => number | null
}

const sourcePart = (planning: Planning, topic: MirroredTopic, partition: number, ends: Ends): SourcePart => {
  const { chain, clusters, config, flow } = planning
  const name = partitionName(topic.source, partition)
  const start = ends.starts.get(name) ?? 0
  const optionalTo = ends.optional.get(name) ?? start
  const required = Math.max(start, ends.required.get(name) ?? start)
  const from = Math.min(Math.max(start, ends.from(name) ?? start), required)
  const to = Math.max(from, Math.min(required, ends.to(name) ?? required))
  return {
    topic: topic.source,
    topicId: topic.sourceId,
    partition,
    from,
    to,
    optionalTo: Math.max(to, optionalTo),
    logStart: start,
    targetTopic: topic.target,
    chain: needsProvenance(config, flow, clusters, topic.source) ? withProvenance(chain, clusters, () => {}) : chain,
    notes: start > 0 ? [`the source begins at offset ${start}: what it has removed is not compared`] : []
  }
}

const unitsOf = (parts: ReadonlyArray<SourcePart>, routed: boolean): ReadonlyArray<Unit> =>
  routed
    ? [...Map.groupBy(parts, ({ partition }) => partition)].map(([partition, list]) => ({
      parts: list,
      partition,
      routed
    }))
    : parts.map((part) => ({ parts: [part], partition: part.partition, routed }))

/** What is on the target at these topics, taken once. */
const targetParts = (
  target: Cluster,
  topics: ReadonlyArray<string>,
  onWait: Planning["onWait"]
): Effect.Effect<ReadonlyMap<string, TargetPart>, WireError> =>
  Effect.gen(function*() {
    const found = topics.length === 0 ? new Map<string, TopicMetadata>() : yield* target.retrying(target.topics(topics))
    const there = [...found.values()].map((topic): MirroredTopic => ({
      source: topic.name,
      sourceId: topic.id,
      target: topic.name,
      partitions: topic.partitions.length
    }))
    const { ends } = yield* settledTarget(target, there, onWait)
    const starts = yield* startOffsets(target, there)
    const settings = yield* describeTopicSettings(target, there.map(({ source }) => source))
    const parts = new Map<string, TargetPart>()
    for (const topic of there) {
      const described = settings.get(topic.source)
      const value = (key: string) =>
        described?.ok === true ? described.settings.find(({ name }) => name === key)?.value : null
      for (let partition = 0; partition < topic.partitions; partition++) {
        const name = partitionName(topic.source, partition)
        parts.set(name, {
          topic: topic.source,
          topicId: topic.sourceId,
          partition,
          from: starts.get(name) ?? 0,
          to: ends.get(name) ?? 0,
          compared: { timestamps: value("message.timestamp.type") !== "LogAppendTime" },
          compacted: (value("cleanup.policy") ?? "").includes("compact")
        })
      }
    }
    return parts
  })

export interface Planned {
  readonly units: ReadonlyArray<Unit>
  readonly targetPart: Sides["targetPart"]
  readonly sourceCompacted: Sides["sourceCompacted"]
  /** Records of the source that the mirror has not come to, left out. */
  readonly tail: number
}

export const plan = (planning: Planning): Effect.Effect<Planned, WireError> =>
  Effect.gen(function*() {
    const { clusters: { source, target }, flow, onWait, options, topics } = planning
    const committed = flow.isolationLevel === "read_committed"
    const mode = flow.groupProtocol.value
    const settled = yield* settle({ source, groupId: flow.groupId, mode, committed, topics, onWait })
    const known = yield* targetParts(target, [...new Set(topics.map((topic) => topic.target))], onWait)
    const optional = yield* endOffsets(source, topics, committed)
    const starts = yield* startOffsets(source, topics)
    const from = yield* edgeOffsets(source, topics, options.from)
    const to = yield* edgeOffsets(source, topics, options.to)
    const ends: Ends = { starts, required: settled.required, optional, from, to }
    const parts: Array<SourcePart> = []
    for (const topic of topics) {
      for (const partition of yield* chosenPartitions(topic.partitions, options.sample)) {
        parts.push(sourcePart(planning, topic, partition, ends))
      }
    }
    const policies = yield* describeTopicSettings(source, topics.map((topic) => topic.source))
    const compacted = (topic: string): boolean => {
      const described = policies.get(topic)
      return described?.ok === true &&
        described.settings.some(({ name, value }) => name === "cleanup.policy" && (value ?? "").includes("compact"))
    }
    const tail = [...settled.ends].reduce(
      (sum, [name, end]) => sum + Math.max(0, end - Math.max(settled.required.get(name) ?? end, starts.get(name) ?? 0)),
      0
    )
    return {
      units: unitsOf(parts, isRouted(flow)),
      tail,
      sourceCompacted: (topic) => Effect.succeed(compacted(topic)),
      targetPart: (topic, partition) => {
        const found = known.get(partitionName(topic, partition))
        if (found !== undefined || !isRouted(flow)) return Effect.succeed(found ?? null)
        return Effect.map(targetParts(target, [topic], onWait), (more) =>
          more.get(partitionName(topic, partition)) ?? null)
      }
    }
  })
