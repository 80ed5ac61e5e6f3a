/**
 * The words committed beside each offset (OffsetCommit's metadata, which every Kafka tool shows): the id of the topic
 * that the offset belongs to, so that a topic created anew under the same name is noticed even when the offset fits
 * it; and, with auto.offset.reset latest, how many partitions the topic had when the group began, so that one added
 * later is read from its beginning. Pure.
 */
import { ZERO_UUID } from "../wire/schema.ts"

export interface CommitMetadata {
  /** null: unknown (an older broker, or committed by somebody else). */
  readonly topicId: string | null
  readonly partitions: number | null
}

export const writeCommitMetadata = ({ partitions, topicId }: CommitMetadata): string =>
  [
    ...(topicId === null || topicId === "" || topicId === ZERO_UUID ? [] : [`topic.id=${topicId}`]),
    ...(partitions === null ? [] : [`partitions=${partitions}`])
  ].join(" ")

/**
 * What others have written there reads as unknown. Gotcha: librdkafka's add-on commits the NUL that ends a C string as
 * part of the words; it gives them back without it, a broker asked by ourselves gives it.
 */
export const parseCommitMetadata = (words: string): CommitMetadata => {
  const text = words.endsWith("\0") ? words.slice(0, -1) : words
  const topicId = /(?:^| )topic\.id=([\w-]{22})(?: |$)/.exec(text)?.[1] ?? null
  const partitions = /(?:^| )partitions=(\d{1,9})(?: |$)/.exec(text)?.[1]
  return { topicId, partitions: partitions === undefined ? null : Number(partitions) }
}
