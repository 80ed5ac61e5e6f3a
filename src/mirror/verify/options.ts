/** What `onceover verify` may be told. */

/** An offset of the source, or a time (milliseconds since 1970). */
export type Edge = { readonly offset: number } | { readonly timeMs: number }

export interface VerifyOptions {
  /** Names of flows; null: every enabled one. */
  readonly flow: string | null
  /** Source topics, whole names. */
  readonly topics: RegExp | null
  readonly from: Edge | null
  /** Not included. */
  readonly to: Edge | null
  /** Partitions of each topic that are looked at, chosen by chance; null: all. */
  readonly sample: number | null
}

export interface VerifyProgress {
  /** Offsets of both sides that have been passed, and that are to be passed; the latter grows where sides differ. */
  readonly done: number
  readonly total: number
  /** What is being waited for before the reading, in words. */
  readonly waiting: string | null
}
