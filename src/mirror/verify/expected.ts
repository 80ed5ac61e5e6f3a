/** What the mirror makes of a source record: the same transforms that the lanes apply, and the mark of where it is from. */
import type { Rec } from "../../wire/batch/records.ts"
import type { TransformChain } from "../transforms/chain.ts"
import type { TransformOutcome } from "../transforms/transform.ts"

/** Records that are not expected on the target. */
export interface Tally {
  filtered: number
  failed: number
}

/** `record.offset` is the source's. */
export type Use = (targetTopic: string, record: Rec) => void

const take = (outcome: TransformOutcome, offset: number, tally: Tally, use: Use): void => {
  if (outcome.kind === "drop") tally.filtered++
  else if (outcome.kind === "failed") tally.failed++
  else {
    const { headers, key, timestamp, topic, value } = outcome.record
    use(topic, { offset, timestamp, key, value, headers })
  }
}

const later = async (
  outcomes: ReadonlyArray<TransformOutcome | Promise<TransformOutcome>>,
  records: ReadonlyArray<Rec>,
  tally: Tally,
  use: Use
): Promise<void> => {
  for (const [i, outcome] of outcomes.entries()) take(await outcome, (records[i] as Rec).offset, tally, use)
}

/** Gives each record that is to be on the target; a promise only where a transform is asynchronous. */
export const expect = (
  chain: TransformChain | null,
  place: { readonly targetTopic: string; readonly partition: number },
  records: ReadonlyArray<Rec>,
  tally: Tally,
  use: Use
): void | Promise<void> => {
  if (chain === null) {
    for (const record of records) use(place.targetTopic, record)
    return
  }
  const outcomes = records.map((record) =>
    chain.apply({ ...record, topic: place.targetTopic, partition: place.partition })
  )
  if (outcomes.some((outcome) => outcome instanceof Promise)) return later(outcomes, records, tally, use)
  for (const [i, outcome] of outcomes.entries()) {
    take(outcome as TransformOutcome, (records[i] as Rec).offset, tally, use)
  }
}
