/** The pieces that are compared: partitions of the source with their bounds, and the places on the target they go to. */
import type { Effect } from "effect"
import type { WireError } from "../../wire/errors.ts"
import type { TransformChain } from "../transforms/chain.ts"
import type { Compared } from "./digest.ts"
import type { PartitionRange, Reading } from "./rangeReader.ts"

/** One source partition. Offsets at `to` and behind may be on the target or not, up to `optionalTo`. */
export interface SourcePart extends PartitionRange {
  readonly optionalTo: number
  /** Where the log begins, at or below `from`. */
  readonly logStart: number
  readonly targetTopic: string
  readonly chain: TransformChain | null
  /** Why it does not begin or end where the log does, in sentences. */
  readonly notes: ReadonlyArray<string>
}

/** What is on the target at one place, as the comparison began. */
export interface TargetPart extends PartitionRange {
  readonly compared: Compared
  readonly compacted: boolean
}

export interface Sides {
  readonly source: Reading
  readonly target: Reading
  /** Null: the target has no such partition. */
  readonly targetPart: (topic: string, partition: number) => Effect.Effect<TargetPart | null, WireError>
  readonly sourceCompacted: (topic: string) => Effect.Effect<boolean, WireError>
  /** The order within a partition is kept. */
  readonly ordered: boolean
  /** Everything from the source's beginning is mirrored; else the mirror began later (auto.offset.reset). */
  readonly fromBeginning: boolean
  /** Where the comparison ends is not where the source ended: the target may hold records from behind it. */
  readonly endsEarly: boolean
  /** So many offsets are to be passed that were not known before. */
  readonly onMore: (offsets: number) => void
}

/** Source partitions that are compared together: one, or where transforms name topics, all of one number. */
export interface Unit {
  readonly parts: ReadonlyArray<SourcePart>
  readonly partition: number
  /** Transforms name topics: which ones is found out by reading. */
  readonly routed: boolean
}

/** What one place on the target is to hold, and holds. */
export interface Place {
  readonly targetTopic: string
  readonly partition: number
  readonly parts: ReadonlyArray<SourcePart>
  readonly target: TargetPart
  /** Records at offsets below these on one side only were removed on the other side by its own clean-up. */
  readonly zone: { readonly source: number; readonly target: number }
}
