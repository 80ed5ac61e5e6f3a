/** Metadata, by name and by id. A topic may be created when it is asked for. */
import { metadata } from "../../wire/messages/metadata.ts"
import { ZERO_UUID } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import { type ClusterState, controllerId, runningBrokers, type Topic } from "../model/state.ts"
import { numberOf } from "../model/settings.ts"
import { createTopic, legalTopicName } from "../model/topics.ts"
import { handler } from "./handler.ts"

const described = (state: ClusterState, topic: Topic) => ({
  errorCode: code.NONE,
  name: topic.name,
  topicId: topic.id,
  isInternal: topic.internal,
  partitions: topic.partitions.map((partition) => {
    const inSync = partition.replicas.filter((id) => state.brokers.get(id)?.running === true)
    return {
      errorCode: partition.leader < 0 ? code.LEADER_NOT_AVAILABLE : code.NONE,
      partitionIndex: partition.index,
      leaderId: partition.leader,
      leaderEpoch: partition.leaderEpoch,
      replicaNodes: partition.replicas,
      isrNodes: inSync,
      offlineReplicas: partition.replicas.filter((id) => !inSync.includes(id))
    }
  })
})

const absent = (errorCode: number, name: string | null, topicId: string) => ({
  errorCode,
  name,
  topicId,
  isInternal: false,
  partitions: []
})

const byName = (state: ClusterState, name: string, mayCreate: boolean) => {
  const known = state.topics.get(name)
  if (known !== undefined) return described(state, known)
  if (!legalTopicName(name)) return absent(code.INVALID_TOPIC_EXCEPTION, name, ZERO_UUID)
  if (!mayCreate) return absent(code.UNKNOWN_TOPIC_OR_PARTITION, name, ZERO_UUID)
  return described(state, createTopic(state, name, numberOf(state, "broker", "", "num.partitions")))
}

const byId = (state: ClusterState, id: string) => {
  const known = state.topicsById.get(id)
  return known === undefined ? absent(code.UNKNOWN_TOPIC_ID, null, id) : described(state, known)
}

export const metadataHandler = handler(metadata, ({ request, state, version }) => {
  const all = request.topics === null || (version === 0 && request.topics.length === 0)
  const mayCreate = state.options.autoCreateTopics && (version < 4 || request.allowAutoTopicCreation)
  return {
    brokers: runningBrokers(state).map(({ host, id, port, rack }) => ({ nodeId: id, host, port, rack })),
    clusterId: state.clusterId,
    controllerId: controllerId(state),
    topics: all
      ? [...state.topics.values()].map((topic) => described(state, topic))
      : (request.topics ?? []).map((topic) =>
        topic.name === null ? byId(state, topic.topicId) : byName(state, topic.name, mayCreate)
      )
  }
})
