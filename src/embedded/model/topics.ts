/** Topics and who leads their partitions. */
import { code } from "./codes.ts"
import { emptyLog } from "./partitionLog.ts"
import { type ClusterState, newUuid, type Partition, runningBrokers, type Topic } from "./state.ts"

const LEGAL = /^[a-zA-Z0-9._-]{1,249}$/
export const legalTopicName = (name: string): boolean => LEGAL.test(name) && name !== "." && name !== ".."

const INTERNAL = new Set(["__consumer_offsets", "__transaction_state", "__share_group_state"])

const newPartition = (state: ClusterState, index: number, replication: number): Partition => {
  const ids = [...state.brokers.keys()]
  const replicas = Array.from({ length: replication }, (_, i) => ids[(index + i) % ids.length] as number)
  const leader = replicas.find((id) => state.brokers.get(id)?.running === true) ?? -1
  return { index, replicas, leader, leaderEpoch: 0, log: emptyLog() }
}

/** Makes a topic; what is allowed is checked by the handler. `replication` -1: 1 broker or as many as 3. */
export const createTopic = (state: ClusterState, name: string, partitions: number, replication = -1): Topic => {
  const copies = replication === -1 ? Math.min(3, state.brokers.size) : replication
  const topic: Topic = { name, id: newUuid(state), internal: INTERNAL.has(name), partitions: [] }
  for (let index = 0; index < partitions; index++) topic.partitions.push(newPartition(state, index, copies))
  state.topics.set(name, topic)
  state.topicsById.set(topic.id, topic)
  return topic
}

export const growTopic = (state: ClusterState, topic: Topic, count: number): void => {
  const replication = topic.partitions[0]?.replicas.length ?? 1
  for (let index = topic.partitions.length; index < count; index++) {
    topic.partitions.push(newPartition(state, index, replication))
  }
}

export const deleteTopic = (state: ClusterState, topic: Topic): void => {
  state.topics.delete(topic.name)
  state.topicsById.delete(topic.id)
  state.settings.delete(`topic:${topic.name}`)
}

export const partitionOf = (state: ClusterState, topic: string, partition: number): Partition | null =>
  state.topics.get(topic)?.partitions[partition] ?? null

export const moveLeader = (partition: Partition, leader: number): void => {
  if (partition.leader === leader) return
  partition.leader = leader
  partition.leaderEpoch++
}

/** Partitions whose leader does not run get another replica as leader, or none; those without one get one that runs. */
export const electLeaders = (
  state: ClusterState
): ReadonlyArray<{ readonly topic: Topic; readonly partition: Partition }> => {
  const runs = new Set(runningBrokers(state).map((broker) => broker.id))
  const moved: Array<{ readonly topic: Topic; readonly partition: Partition }> = []
  for (const topic of state.topics.values()) {
    for (const partition of topic.partitions) {
      if (runs.has(partition.leader)) continue
      const next = partition.replicas.find((id) => runs.has(id)) ?? -1
      if (next === partition.leader) continue
      moveLeader(partition, next)
      moved.push({ topic, partition })
    }
  }
  return moved
}

/** The partition, if this broker leads it; the code otherwise. */
export const ledPartition = (brokerId: number, topic: Topic | undefined, index: number): Partition | number => {
  const partition = topic?.partitions[index]
  if (partition === undefined) return code.UNKNOWN_TOPIC_OR_PARTITION
  return partition.leader === brokerId ? partition : code.NOT_LEADER_OR_FOLLOWER
}

/** What a client believes of the leader epoch, against what is so (KIP-320). */
export const epochError = (partition: Partition, clientEpoch: number): number => {
  if (clientEpoch < 0 || clientEpoch === partition.leaderEpoch) return code.NONE
  return clientEpoch < partition.leaderEpoch ? code.FENCED_LEADER_EPOCH : code.UNKNOWN_LEADER_EPOCH
}
