/**
 * Going on where MirrorMaker 2 stopped: its positions on the source, which it keeps in Connect's offsets topic on the
 * target, become the first position of a flow's group. Without it a new group would mirror everything a second time into
 * the same target topics.
 *
 * Guarantees: only a group that has no position at all is given one, so it happens once; and not while MirrorMaker's
 * workers are in their group on the target, because both would mirror the same records. Nothing of MirrorMaker's is
 * changed, so it can be started again.
 *
 * Formats (Kafka 4.3): key `["MirrorSourceConnector",{"cluster":"east","partition":0,"topic":"orders"}]`, value
 * `{"offset":41}` for the last record that was sent, null where it was forgotten. The last record of a key counts.
 */
import { Effect } from "effect"
import type { Origin } from "../config/mm2/origins.ts"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { Cluster } from "../wire/cluster.ts"
import type { WireError } from "../wire/errors.ts"
import { type GroupPosition, positionsOf } from "./control/groupPositions.ts"
import { allGroups, moveGroup } from "./control/groups.ts"
import { endOffsets, startOffsets } from "./control/logOffsets.ts"
import { missingOnGroups } from "./control/missingRights.ts"
import { partitionName } from "./control/offsets.ts"
import { findTopic } from "./control/smallTopic.ts"
import { selectTopics, settleDoubts } from "./control/topics.ts"
import { FlowStopped } from "./errors.ts"
import { connectFlow, namingOf } from "./flowSetup.ts"
import { readRange } from "./verify/rangeReader.ts"

export interface TakenOver {
  readonly flow: string
  readonly offsetsTopic: string
  /** Partitions that go on where MirrorMaker stopped. */
  readonly partitions: number
  /** Why nothing was taken over; null: something was. */
  readonly reason: string | null
}

const FETCH_BYTES = 4 * 1024 * 1024

const parsed = (bytes: Buffer | null): unknown => {
  try {
    return bytes === null ? null : JSON.parse(bytes.toString("utf8")) as unknown
  } catch {
    return undefined
  }
}

interface SourcePartition {
  readonly topic: string
  readonly partition: number
}

/** null: not a key of MirrorMaker's source connector for this cluster. */
export const readKey = (key: Buffer | null, cluster: string): SourcePartition | null => {
  const value = parsed(key)
  const at: unknown = Array.isArray(value) ? value[1] : undefined
  if (typeof at !== "object" || at === null) return null
  const { cluster: of, partition, topic } = at as Readonly<Record<string, unknown>>
  return of === cluster && typeof topic === "string" && typeof partition === "number" ? { topic, partition } : null
}

/** The next offset that MirrorMaker would read; null: it has forgotten the partition. */
export const readPosition = (value: Buffer | null): number | null => {
  const read = parsed(value)
  const offset = typeof read === "object" && read !== null ? (read as { readonly offset?: unknown }).offset : undefined
  return typeof offset === "number" && Number.isSafeInteger(offset) ? offset + 1 : null
}

/** Why MirrorMaker may be at work still; null: nobody is in its workers' group. */
const stillRunning = (target: Cluster, { workerGroup }: Origin) =>
  Effect.gen(function*() {
    const whom = { cluster: target, principal: "the principal" }
    const unseen = yield* missingOnGroups(whom, [workerGroup], [{ feature: "take-over", operation: "DESCRIBE" }])
    // A group that may not be seen looks like one that is not there.
    if (unseen.length > 0) {
      return `whether MirrorMaker 2 is still running cannot be seen: the principal lacks DESCRIBE on GROUP ${workerGroup} of "${target.name}"`
    }
    const worker = (yield* allGroups(target)).get(workerGroup)
    return worker === undefined || worker.empty !== false
      ? null
      : `MirrorMaker 2 is still running (group ${workerGroup} on "${target.name}" has members): stop it first, or both mirror the same records`
  })

/** MirrorMaker's positions by partition of the source. */
const positionsIn = (target: Cluster, offsetsTopic: string, source: string) =>
  Effect.gen(function*() {
    const topic = yield* findTopic(target, offsetsTopic)
    if (topic === undefined) return null
    const there = [{
      source: offsetsTopic,
      sourceId: topic.id,
      target: offsetsTopic,
      partitions: topic.partitions.length
    }]
    const starts = yield* startOffsets(target, there)
    const ends = yield* endOffsets(target, there, true)
    const found = new Map<string, GroupPosition>()
    const reading = {
      cluster: target,
      committed: true,
      purpose: "take-over",
      maxBytes: FETCH_BYTES,
      onPassed: () => {}
    }
    for (const { partition } of topic.partitions) {
      const at = partitionName(offsetsTopic, partition)
      const range = {
        topic: offsetsTopic,
        topicId: topic.id,
        partition,
        from: starts.get(at) ?? 0,
        to: ends.get(at) ?? 0
      }
      yield* readRange(reading, range, (records) => {
        for (const { key, value } of records) {
          const of = readKey(key, source)
          if (of === null) continue
          const offset = readPosition(value)
          const name = partitionName(of.topic, of.partition)
          if (offset === null) found.delete(name)
          else found.set(name, { ...of, offset, metadata: "" })
        }
        return true
      })
    }
    return found
  })

const takeFlow = (config: ResolvedConfig, flow: ResolvedFlow, origin: Origin) =>
  Effect.gen(function*() {
    const clusters = yield* connectFlow(config, flow)
    const { source, target } = clusters
    const head = { flow: flow.name, offsetsTopic: origin.offsetsTopic, partitions: 0 }
    const kind = flow.groupProtocol.value
    const nothing = (reason: string): TakenOver => ({ ...head, reason })
    if ((yield* positionsOf(source, flow.groupId, kind)).size > 0) {
      return nothing(`group ${flow.groupId} has positions of its own`)
    }
    const all = yield* positionsIn(target, origin.offsetsTopic, flow.source)
    if (all === null || all.size === 0) {
      return nothing(
        `${origin.offsetsTopic} on "${flow.target}" has no positions of MirrorMaker 2 for "${flow.source}"`
      )
    }
    const running = yield* stillRunning(target, origin)
    if (running !== null) return yield* new FlowStopped({ what: `flow ${flow.name}: ${running}` })
    const selected = selectTopics(yield* source.retrying(source.allTopics), namingOf(config, flow, clusters))
    const counts = new Map(
      (yield* settleDoubts(target, selected)).topics.map((topic) => [topic.source, topic.partitions])
    )
    const moves = [...all.values()].filter(({ partition, topic }) => partition < (counts.get(topic) ?? 0))
    const moved = yield* moveGroup(source, flow.groupId, kind, moves)
    const refused = [...moved.values()].find((error) => error !== null)
    if (refused !== undefined && refused !== null) {
      return yield* new FlowStopped({
        what: `flow ${flow.name}: group ${flow.groupId} cannot be set to MirrorMaker 2's positions: ${refused.message}`
      })
    }
    return moves.length === 0
      ? nothing(`none of MirrorMaker 2's positions is of a topic that the flow mirrors`)
      : { ...head, partitions: moves.length, reason: null }
  })

/** For each flow that runs and that the file is the origin of. Fails where going on would double or lose records. */
export const takeMm2Positions = (
  config: ResolvedConfig,
  origins: ReadonlyArray<Origin>
): Effect.Effect<ReadonlyArray<TakenOver>, WireError | FlowStopped | { readonly message: string }> =>
  Effect.forEach(
    config.flows.filter(({ enabled }) => enabled).flatMap((flow) => {
      const origin = origins.find(({ source, target }) => source === flow.source && target === flow.target)
      return origin === undefined ? [] : [[flow, origin] as const]
    }),
    ([flow, origin]) => Effect.scoped(takeFlow(config, flow, origin))
  )
