/** What `onceover verify` finds: the JSON document of --json, and what the text on the terminal is made from. */

export interface Bounds {
  /** Offsets: `from` is included, `to` is not. */
  readonly from: number
  readonly to: number
  /** Visible records between them. */
  readonly records: number
}

/** Records that are on one side only and are no difference. */
export interface Explained {
  /** The source has dropped them (retention, deletion, compaction), the target has not yet. */
  readonly removedOnSource: number
  /** The target has dropped them, the source has not yet. */
  readonly removedOnTarget: number
  /** Not mirrored yet when the comparison began. */
  readonly notYetMirrored: number
  /** Dropped by a transform, or because they came through the target. */
  readonly filtered: number
}

export interface Difference {
  readonly kind: "lost" | "doubled" | "altered" | "foreign"
  /** null: the source has no such record. */
  readonly sourceOffset: number | null
  /** null: the target has no such record. */
  readonly targetOffset: number | null
  /** altered: which parts differ. */
  readonly parts: ReadonlyArray<string>
}

export interface VerifiedPartition {
  /** Several where transforms bring records of several topics into one. */
  readonly sourceTopics: ReadonlyArray<string>
  readonly targetTopic: string
  readonly partition: number
  readonly source: Bounds
  readonly target: Bounds
  readonly equal: boolean
  readonly lost: number
  readonly doubled: number
  readonly altered: number
  /** On the target without a counterpart. */
  readonly foreign: number
  readonly explained: Explained
  /** The first of them, by kind and offset. */
  readonly differences: ReadonlyArray<Difference>
  /** Sentences: what was left out, what could not be looked at and why. */
  readonly notes: ReadonlyArray<string>
  /** Why it could not be compared; null: it was. */
  readonly problem: string | null
}

export interface VerifiedFlow {
  readonly name: string
  readonly source: string
  readonly target: string
  readonly equal: boolean
  readonly partitions: ReadonlyArray<VerifiedPartition>
  readonly notes: ReadonlyArray<string>
  readonly problem: string | null
}

export interface VerifyReport {
  readonly equal: boolean
  readonly flows: ReadonlyArray<VerifiedFlow>
}

/** Differences that are told one by one, of each partition. */
export const LISTED = 100
