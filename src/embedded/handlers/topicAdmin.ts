/** Topics made, grown, deleted; records deleted. */
import { createPartitions } from "../../wire/messages/createPartitions.ts"
import { createTopics } from "../../wire/messages/createTopics.ts"
import { deleteRecords } from "../../wire/messages/deleteRecords.ts"
import { deleteTopics } from "../../wire/messages/deleteTopics.ts"
import { type Decoded, ZERO_UUID } from "../../wire/schema.ts"
import { code } from "../model/codes.ts"
import { deleteBefore } from "../model/partitionLog.ts"
import { numberOf, rulesOf, settingsOf } from "../model/settings.ts"
import { type ClusterState, runningBrokers } from "../model/state.ts"
import { createTopic, deleteTopic, growTopic, ledPartition, legalTopicName } from "../model/topics.ts"
import { handler } from "./handler.ts"

type Creatable = Decoded<typeof createTopics.request.fields>["topics"][number]

interface Refusal {
  readonly errorCode: number
  readonly errorMessage: string
}
const no = (errorCode: number, errorMessage: string): Refusal => ({ errorCode, errorMessage })

const settingError = (configs: Creatable["configs"]): Refusal | null => {
  for (const { name, value } of configs) {
    const rule = rulesOf("topic")[name]
    if (rule === undefined) return no(code.INVALID_CONFIG, `Unknown topic config name: ${name}`)
    const wrong = value === null ? null : rule.check(value)
    if (wrong !== null) return no(code.INVALID_CONFIG, `Invalid value ${value} for configuration ${name}: ${wrong}`)
  }
  return null
}

const creationError = (state: ClusterState, topic: Creatable): Refusal | null => {
  if (!legalTopicName(topic.name)) return no(code.INVALID_TOPIC_EXCEPTION, `Topic name "${topic.name}" is illegal.`)
  if (state.topics.has(topic.name)) return no(code.TOPIC_ALREADY_EXISTS, `Topic '${topic.name}' already exists.`)
  if (topic.assignments.length === 0 && topic.numPartitions !== -1 && topic.numPartitions <= 0) {
    return no(code.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
  }
  const running = runningBrokers(state).length
  if (topic.replicationFactor > running) {
    return no(
      code.INVALID_REPLICATION_FACTOR,
      `Unable to replicate the partition ${topic.replicationFactor} time(s): only ${running} broker(s) are registered.`
    )
  }
  if (topic.assignments.length === 0 && topic.replicationFactor !== -1 && topic.replicationFactor <= 0) {
    return no(
      code.INVALID_REPLICATION_FACTOR,
      "Replication factor must be larger than 0, or -1 to use the default value."
    )
  }
  return settingError(topic.configs)
}

const create = (state: ClusterState, asked: Creatable, validateOnly: boolean) => {
  const refusal = creationError(state, asked)
  if (refusal !== null) return { name: asked.name, topicId: ZERO_UUID, ...refusal }
  const count = asked.assignments.length ||
    (asked.numPartitions === -1 ? numberOf(state, "broker", "", "num.partitions") : asked.numPartitions)
  const factor = asked.replicationFactor === -1
    ? numberOf(state, "broker", "", "default.replication.factor")
    : asked.replicationFactor
  const answer = {
    name: asked.name,
    errorCode: code.NONE,
    errorMessage: null,
    numPartitions: count,
    replicationFactor: asked.assignments[0]?.brokerIds.length ?? factor
  }
  if (validateOnly) return { ...answer, topicId: ZERO_UUID }
  const topic = createTopic(state, asked.name, count, factor)
  for (const { brokerIds, partitionIndex } of asked.assignments) {
    const partition = topic.partitions[partitionIndex]
    if (partition !== undefined) Object.assign(partition, { replicas: brokerIds, leader: brokerIds[0] ?? -1 })
  }
  for (const { name, value } of asked.configs) {
    if (value !== null) settingsOf(state, "topic", topic.name).set(name, value)
  }
  return { ...answer, topicId: topic.id }
}

export const createTopicsHandler = handler(createTopics, ({ request, state }) => {
  const twice = new Set(request.topics.map((t) => t.name).filter((name, i, all) => all.indexOf(name) !== i))
  return {
    topics: request.topics.map((topic) =>
      twice.has(topic.name)
        ? { name: topic.name, ...no(code.INVALID_REQUEST, "Duplicate topic name.") }
        : create(state, topic, request.validateOnly)
    )
  }
})

export const createPartitionsHandler = handler(createPartitions, ({ request, state }) => ({
  results: request.topics.map(({ count, name }) => {
    const topic = state.topics.get(name)
    if (topic === undefined) {
      return {
        name,
        errorCode: code.UNKNOWN_TOPIC_OR_PARTITION,
        errorMessage: "This server does not host this topic-partition."
      }
    }
    const now = topic.partitions.length
    if (count <= now) {
      const errorMessage = count === now
        ? `Topic already has ${now} partition(s).`
        : `The topic ${name} currently has ${now} partition(s); ${count} would not be an increase.`
      return { name, errorCode: code.INVALID_PARTITIONS, errorMessage }
    }
    if (!request.validateOnly) growTopic(state, topic, count)
    return { name, errorCode: code.NONE }
  })
}))

export const deleteTopicsHandler = handler(deleteTopics, ({ request, state, version }) => {
  const asked = version >= 6 ? request.topics : request.topicNames.map((name) => ({ name, topicId: ZERO_UUID }))
  return {
    responses: asked.map(({ name, topicId }) => {
      const topic = name === null ? state.topicsById.get(topicId) : state.topics.get(name)
      if (topic === undefined) {
        const errorCode = name === null ? code.UNKNOWN_TOPIC_ID : code.UNKNOWN_TOPIC_OR_PARTITION
        return { name, topicId, errorCode, errorMessage: "This server does not host this topic." }
      }
      deleteTopic(state, topic)
      return { name: topic.name, topicId: topic.id, errorCode: code.NONE }
    })
  }
})

export const deleteRecordsHandler = handler(deleteRecords, ({ brokerId, request, state }) => ({
  topics: request.topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ offset, partitionIndex }) => {
      const failed = (errorCode: number) => ({ partitionIndex, lowWatermark: -1, errorCode })
      const led = ledPartition(brokerId, state.topics.get(name), partitionIndex)
      if (typeof led === "number") return failed(led)
      const before = offset === -1 ? led.log.endOffset : offset
      if (before < 0 || before > led.log.endOffset) return failed(code.OFFSET_OUT_OF_RANGE)
      deleteBefore(led.log, before)
      return { partitionIndex, lowWatermark: led.log.startOffset, errorCode: code.NONE }
    })
  }))
}))
