/**
 * Partitions that nobody can be asked for: their broker does not answer, or they have no leader. Everyday when it
 * passes at once; said when it does not, for each partition once, and once more when its broker has answered.
 */
import type { BrokerLink, ShareCore } from "./core.ts"
import { partitionKey, type TopicIdPartition } from "./session.ts"

/** So many failures in a row are nothing to speak of: some seconds with Kafka's back-off. */
const PATIENCE = 5

const tell = (core: ShareCore, partitions: Iterable<TopicIdPartition>, why: string): void => {
  for (const at of partitions) {
    const key = partitionKey(at)
    if (core.unreachable.has(key)) continue
    core.unreachable.set(key, at)
    core.emit({ kind: "partitionProblem", topic: core.topicName(at.topicId), partition: at.partition, code: null, why })
  }
}

const tellReached = (core: ShareCore, key: string): void => {
  const at = core.unreachable.get(key)
  if (at === undefined) return
  core.unreachable.delete(key)
  core.emit({ kind: "partitionRecovered", topic: core.topicName(at.topicId), partition: at.partition })
}

/** The broker has not answered once more. */
export const brokerSilent = (core: ShareCore, link: BrokerLink, why: string): void => {
  if (link.failures > PATIENCE) tell(core, link.wanted.values(), why)
}

/** The broker has answered. */
export const brokerAnswered = (core: ShareCore, link: BrokerLink): void => {
  if (core.unreachable.size > 0) { for (const key of link.wanted.keys()) tellReached(core, key) }
}

/** After so many look-ups in a row these have no leader. */
export const leaderless = (core: ShareCore, partitions: ReadonlyArray<TopicIdPartition>, lookUps: number): void => {
  if (lookUps > PATIENCE) tell(core, partitions, "no broker leads it now")
}

/** What is another member's now is no trouble of ours. */
export const forgetUnassigned = (core: ShareCore): void => {
  for (const [key, at] of core.unreachable) {
    if (core.assignment.get(at.topicId)?.includes(at.partition) !== true) tellReached(core, key)
  }
}
