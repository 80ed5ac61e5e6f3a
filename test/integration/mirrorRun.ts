/** What the tests of running mirrors share: records that keep coming, sums of metrics, members of a group, waiting for an outcome. */
import { Admin } from "@platformatic/kafka"
import { Effect } from "effect"
import { shareGroupDescribe } from "../../src/wire/messages/shareGroupDescribe.ts"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { endOffsets } from "../kit/admin.ts"
import { readTopics } from "../kit/auditor.ts"
import { compare, type Comparison, describeComparison } from "../kit/compare.ts"
import { type Bootstrap, makeRecords, openLoader } from "../kit/loader.ts"
import type { FlowState, Onceover } from "../kit/onceover.ts"
import { until } from "../kit/until.ts"

export interface Feed {
  /** Records confirmed by the source so far. */
  readonly sent: () => number
  /** Waits until this many more records are on the source. */
  readonly more: (count: number) => Promise<void>
  /** Ends it; how many records there are. */
  readonly stop: () => Promise<number>
}

export interface FeedSpec {
  readonly topic: string
  readonly targetTopic: string
  readonly partitions: number
  /** Default 2 000. */
  readonly ahead?: number
  /** Records at once. Default 100. */
  readonly chunk?: number
  /** The most to wait for the mirror, milliseconds. Default 120 000. */
  readonly timeoutMs?: number
}

/** Records on and on, round robin over the partitions, never more than `ahead` before what the target topic has. */
export const startFeed = async (
  source: Bootstrap,
  target: Bootstrap,
  spec: FeedSpec
): Promise<Feed> => {
  const { ahead = 2_000, chunk = 100, partitions, targetTopic, timeoutMs = 120_000, topic } = spec
  const loader = await openLoader(source)
  let sent = 0
  let going = true
  const arrived = async () => (await endOffsets(target, targetTopic)).reduce((sum, end) => sum + end, 0)
  const loop = (async () => {
    while (going) {
      await loader.send(makeRecords({ topic, count: chunk, partitions, from: sent }))
      sent += chunk
      await until(async () => !going || (await arrived()) > sent - ahead, {
        timeoutMs,
        what: `the mirror to come within ${ahead} records`
      })
    }
  })()
  // Told by `stop`, which waits for it.
  loop.catch(() => undefined)
  return {
    sent: () => sent,
    more: async (count) => {
      const wanted = sent + count
      await until(() => sent >= wanted, {
        timeoutMs,
        what: () => `${wanted} records on the source; there are ${sent}`
      })
    },
    stop: async () => {
      going = false
      await loop
      await loader.close()
      return sent
    }
  }
}

/** The sum of a metric over all its series with these labels; 0 when it has none. */
export const metric = async (
  mirror: Onceover,
  name: string,
  labels: Readonly<Record<string, string>> = {}
): Promise<number> => {
  const samples = (await mirror.metrics()).get(name) ?? []
  return samples
    .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
}

/** How many members the coordinator has in a share group. */
export const shareMembers = (cluster: Bootstrap, groupId: string): Promise<number> =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const client = yield* makeCluster("test", { "bootstrap.servers": cluster.bootstrap })
    const answer = yield* client.request({ kind: "group", key: groupId }, shareGroupDescribe, {
      groupIds: [groupId],
      includeAuthorizedOperations: false
    })
    return answer.groups[0]?.members.length ?? 0
  })))

/** How many members of a consumer group have partitions; 0 while it rebalances. */
export const busyMembers = async (cluster: Bootstrap, groupId: string): Promise<number> => {
  const admin = new Admin({ clientId: "test", bootstrapBrokers: cluster.bootstrap.split(",") })
  try {
    const group = (await admin.describeGroups({ groups: [groupId] })).get(groupId)
    if (group?.state.toUpperCase() !== "STABLE") return 0
    return [...group.members.values()].filter(({ assignments }) => (assignments?.size ?? 0) > 0).length
  } finally {
    await admin.close()
  }
}

export const partitionOf = async (
  mirror: Onceover,
  topic: string,
  partition: number
): Promise<FlowState["partitions"][number] | undefined> =>
  (await mirror.status())?.flows.flatMap((flow) => flow.partitions).find((p) =>
    p.topic === topic && p.partition === partition
  )

export const untilBlocked = (
  mirror: Onceover,
  topic: string,
  partition: number,
  timeoutMs = 60_000
): Promise<unknown> =>
  until(async () => (await partitionOf(mirror, topic, partition))?.state === "blocked", {
    timeoutMs,
    what: () => `${topic}-${partition} to be blocked; the log ends with\n${mirror.output().slice(-2_000)}`
  })

/** Compares a topic with its mirror as soon as nothing is missing; the rest of the comparison is for the caller to judge. */
export const untilMirrored = async (
  source: Bootstrap,
  target: Bootstrap,
  places: { readonly topic: string; readonly targetTopic: string },
  mirrors: ReadonlyArray<Onceover> = [],
  timeoutMs = 120_000
): Promise<Comparison> => {
  let last: Comparison | undefined
  await until(async () => {
    const wanted = await readTopics(source, [places.topic])
    const got = await readTopics(target, [places.targetTopic])
    last = compare(wanted, got, { topic: () => places.targetTopic })
    return last.lost.length === 0
  }, {
    timeoutMs,
    everyMs: 300,
    what: () =>
      `all of ${places.topic} on the target: ${last === undefined ? "not read yet" : describeComparison(last)}\n${
        mirrors.map((mirror) => mirror.output().slice(-3_000)).join("\n---\n")
      }`
  })
  return last as Comparison
}
