/**
 * One produce request: which batches go together, how they are written for a version, and which answer belongs to
 * which batch. Pure.
 */
import type { BatchView } from "../wire/batch/recordBatch.ts"
import type { produce } from "../wire/messages/produce.ts"
import { type RequestOf, type ResponseOf, ZERO_UUID } from "../wire/schema.ts"
import type { Slot } from "./sequences.ts"

/** A batch on its way, with its place in the caller's list. */
export interface Item {
  readonly index: number
  readonly topic: string
  readonly partition: number
  readonly view: BatchView
  /** The code of the last answer that asked for another try, null after none; and how often in a row it was this one. */
  lastCode: number | null
  attempts: number
  /** A batch before it in its partition was not taken: give up as soon as nothing is in flight for it. */
  held: boolean
}

export interface Part {
  readonly slot: Slot<Item>
  readonly topicId: string
}

export interface OutgoingRequest {
  readonly broker: number
  readonly parts: ReadonlyArray<Part>
  /** False when a topic's id is not known (brokers before 2.8): Produce 13 cannot be used. */
  readonly allHaveIds: boolean
}

export const outgoing = (broker: number, parts: ReadonlyArray<Part>): OutgoingRequest => ({
  broker,
  parts,
  allHaveIds: parts.every((part) => part.topicId !== ZERO_UUID)
})

/** acks is always -1 (all in-sync replicas). */
export const produceBody = (
  request: OutgoingRequest,
  transactionalId: string | null,
  timeoutMs: number
): RequestOf<typeof produce> => {
  const topics = new Map<
    string,
    { name: string; topicId: string; partitionData: Array<{ index: number; records: Buffer }> }
  >()
  for (const { slot: { item }, topicId } of request.parts) {
    let topic = topics.get(item.topic)
    if (topic === undefined) topics.set(item.topic, topic = { name: item.topic, topicId, partitionData: [] })
    topic.partitionData.push({ index: item.partition, records: item.view.bytes })
  }
  return { transactionalId, acks: -1, timeoutMs, topicData: [...topics.values()] }
}

export type Answer = ResponseOf<typeof produce>["responses"][number]["partitionResponses"][number]

/** Each part of the request with its answer; null where the broker left it out. */
export const matchAnswers = (
  request: OutgoingRequest,
  response: ResponseOf<typeof produce>
): ReadonlyArray<readonly [Part, Answer | null]> => {
  const byName = new Map<string, Answer>()
  const nameOfId = new Map(request.parts.map((part) => [part.topicId, part.slot.item.topic]))
  for (const topic of response.responses) {
    const name = topic.name !== "" ? topic.name : nameOfId.get(topic.topicId)
    for (const answer of topic.partitionResponses) byName.set(`${name}/${answer.index}`, answer)
  }
  return request.parts.map((part) => [part, byName.get(`${part.slot.item.topic}/${part.slot.item.partition}`) ?? null])
}
