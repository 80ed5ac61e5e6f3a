/** What a delivery becomes: units that stand or fall, and the outputs that they are made of. */
import type { OffsetRange } from "../wire/ranges.ts"
import type { MirrorRecord } from "./transforms/transform.ts"
import type { TransformChain } from "./transforms/chain.ts"

/** Where records come from. */
export interface OutputSource {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
}

/** One record batch for one target partition. */
export interface Output {
  /** Set where its records are the source's own, to be found at their places: not of dead letters. */
  readonly source?: OutputSource
  readonly topic: string
  readonly partition: number
  readonly bytes: Buffer
  readonly recordCount: number
  /** The source offsets of its records, in order; a number: they follow each other from there. */
  readonly offsets: number | ReadonlyArray<number>
}

/** The source offset of the n-th record of an output. */
export const sourceOffset = (output: Output, n: number): number =>
  typeof output.offsets === "number" ? output.offsets + n : output.offsets[n] ?? -1

/** Source offsets that stand or fall together: all their outputs are written, or none of them is settled. */
export interface CopyUnit {
  /** Offsets to accept once every output is confirmed. Ascending and disjoint. */
  readonly accept: ReadonlyArray<OffsetRange>
  /** Offsets that hold no record. */
  readonly gaps: ReadonlyArray<OffsetRange>
  readonly outputs: ReadonlyArray<Output>
  /** Records that a transform dropped. */
  readonly filtered: number
  /** Records and bytes of all outputs, as stored. */
  readonly records: number
  readonly bytes: number
  /** Milliseconds since the epoch; 0 without outputs. */
  readonly oldestTimestamp: bigint
  readonly newestTimestamp: bigint
}

/** A record that a transform could not take. */
export interface CopyFailure {
  readonly original: MirrorRecord
  readonly deliveryCount: number
  readonly transform: string
  readonly retriable: boolean
  readonly error: Error
}

export interface Copied {
  readonly units: ReadonlyArray<CopyUnit>
  readonly failures: ReadonlyArray<CopyFailure>
  /**
   * Where order must be kept: the offset of the first record that has to be tried again; nothing from there on was
   * copied. null: all of the delivery is in `units` and `failures`.
   */
  readonly stoppedAt: number | null
}

export interface CopyRules {
  /** The target topic of the delivery's topic, before transforms. */
  readonly targetTopic: string
  /** null: no transform, batches pass through. */
  readonly chain: TransformChain | null
  /** Order per partition must be kept: a record that is to be tried again stops the copy. */
  readonly ordered: boolean
  /** How large a batch may be that is made of small ones, bytes; 0: none is. Default JOIN_BYTES (groups.ts). */
  readonly joinBytes?: number
}
