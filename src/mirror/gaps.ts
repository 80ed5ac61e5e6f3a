/**
 * Share mode: records that the source dropped (retention, deletion) before the group had done with them. A share
 * group goes on behind them by itself and says nothing, so we compare, look by look, how far the group had come with
 * where the log begins. In consumer mode the consumer meets such a gap itself (src/group/gap.ts).
 *
 * Guarantees: each gap is told once; its count is never below the truth, as far as this process can know it.
 *
 * Gotchas: the group's start offset lags behind what is acknowledged (control/offsets.ts), so at the first look,
 * when nothing is known of earlier acknowledgements, the count of records that are not done bounds the gap from both
 * sides. Later the count is of what this process has not acknowledged: it is too high when another process of the
 * group did so between two looks, or when the records were of aborted transactions.
 */
import { type RangeSet, rangeSet, size, subtract } from "../wire/ranges.ts"

export interface SourceGap {
  readonly topic: string
  readonly partition: number
  /** The first offset that may be lost, and the first that is still there. */
  readonly from: number
  readonly to: number
  /** Records lost: at least and at most. */
  readonly atLeast: number
  readonly atMost: number
}

/** One partition at one moment. */
export interface Look {
  readonly topic: string
  readonly partition: number
  /** The group's start offset by the broker's word; null: the group has not begun with the partition. */
  readonly groupStart: number | null
  /** Records from the group's start offset on that are not done; null where the broker does not say. */
  readonly left: number | null
  readonly logStart: number
  readonly highWatermark: number
  /** What this process has acknowledged, as far as it is still known. */
  readonly acknowledged: RangeSet
}

const bounds = (look: Look, from: number, first: boolean): { readonly atLeast: number; readonly atMost: number } => {
  const gone = rangeSet([{ first: from, last: look.logStart - 1 }])
  const notOurs = size(subtract(gone, look.acknowledged))
  // Once the group's start offset has moved, what is left says nothing about what was lost.
  const tells = first && look.left !== null
  const atMost = tells ? Math.min(notOurs, look.left as number) : notOurs
  if (!first) return { atLeast: atMost, atMost }
  const above = Math.max(0, look.highWatermark - look.logStart)
  return { atLeast: tells ? Math.min(atMost, Math.max(0, (look.left as number) - above)) : 0, atMost }
}

/** Remembers where each partition stood at the last look. One for each run of a flow. */
export class GapWatch {
  readonly #done = new Map<string, number>()

  /** The gap that has opened since the last look; null: none. Call `stand` after it. */
  look(look: Look): SourceGap | null {
    const before = this.#done.get(`${look.topic}-${look.partition}`)
    const from = before ?? look.groupStart
    if (from === null || from >= look.logStart) return null
    const { atLeast, atMost } = bounds(look, from, before === undefined)
    if (atMost === 0) return null
    return { topic: look.topic, partition: look.partition, from, to: look.logStart, atLeast, atMost }
  }

  /** Where the partition ("orders-0") stood at the last look; null before the first. */
  position(name: string): number | null {
    return this.#done.get(name) ?? null
  }

  /** The topic is gone, or is another one under its name. */
  forgetTopic(topic: string): void {
    for (const name of [...this.#done.keys()]) {
      if (name.slice(0, name.lastIndexOf("-")) === topic) this.#done.delete(name)
    }
  }

  /** All below `position` is done, or is told. */
  stand(topic: string, partition: number, position: number): void {
    this.#done.set(`${topic}-${partition}`, position)
  }
}

const records = (n: number): string => `${n} ${n === 1 ? "record" : "records"}`

export const gapSentence = ({ atLeast, atMost, from, partition, to, topic }: SourceGap): string => {
  const count = atLeast === atMost ? records(atMost) : `at least ${atLeast} and at most ${records(atMost)}`
  return `${topic}-${partition}: the source no longer has offsets ${from} to ${
    to - 1
  }, with ${count} that had not been mirrored`
}
