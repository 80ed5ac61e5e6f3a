/**
 * What a transform sees and what may come of it. Transforms run one after the other on decoded records; a flow
 * without transforms never decodes (src/mirror/copy.ts).
 *
 * The topic a transform sees is the target's name after the replication policy, as in MirrorMaker 2, where
 * Connect's transforms run after the rename.
 */

export interface Header {
  /** Bytes: a header key that is not UTF-8 survives. */
  readonly key: Buffer
  /** null is not empty. */
  readonly value: Buffer | null
}

export interface MirrorRecord {
  /** The target topic. */
  readonly topic: string
  readonly partition: number
  /** The source offset. */
  readonly offset: number
  /** Milliseconds since the epoch, as the source shows it. */
  readonly timestamp: bigint
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: ReadonlyArray<Header>
}

/** What became of one record. A failure is a value: where it goes (release, dead letter, stop) is the flow's choice. */
export type TransformOutcome =
  | { readonly kind: "keep"; readonly record: MirrorRecord }
  | { readonly kind: "drop" }
  | { readonly kind: "failed"; readonly transform: string; readonly retriable: boolean; readonly error: Error }

/** One step. `apply` may return null (drop the record) and may throw: `chain.ts` turns that into an outcome. */
export interface Transform {
  readonly name: string
  readonly apply: (record: MirrorRecord) => MirrorRecord | null | Promise<MirrorRecord | null>
}
