/** What is mirrored in a run: the shape of the topics and the records in them. */

export type Codec = "none" | "gzip" | "lz4" | "zstd"

export interface Shape {
  /** Unique among the cells of a run; a topic's name begins with it. */
  readonly name: string
  readonly records: number
  /** Length of each value. The figures' bytes are those of the values. */
  readonly valueBytes: number
  readonly codec: Codec
  readonly topics: number
  /** Of each topic. */
  readonly partitions: number
  /** The most that the producer of the source puts into one batch, bytes. */
  readonly batchBytes: number
}

/** As librdkafka's producers do unless told otherwise; their batches then grow with the load. */
export const BATCH_BYTES = 1_000_000

export const recordBytes = (shape: Shape): number => shape.records * shape.valueBytes

export const topicsOf = (shape: Shape): ReadonlyArray<string> =>
  Array.from({ length: shape.topics }, (_, n) => `${shape.name}-${n}`)

const base: Shape = {
  name: "",
  records: 0,
  valueBytes: 1_000,
  codec: "lz4",
  topics: 1,
  partitions: 4,
  batchBytes: BATCH_BYTES
}

export const sizeName = (bytes: number): string => bytes % 1_000 === 0 ? `${bytes / 1_000}KB` : `${bytes}B`

export const makeShape = (over: Partial<Shape> & { readonly name: string }, megabytes: number): Shape => {
  const shape = { ...base, ...over }
  return { ...shape, records: Math.max(1, Math.round(megabytes * 1e6 / shape.valueBytes)) }
}

const CODECS: ReadonlyArray<Codec> = ["none", "lz4", "zstd", "gzip"]
const SIZES = [100, 1_000, 10_000, 100_000]

/** Small records cost by their number, for the mirrors and for the check afterwards: fewer bytes of them. */
const megabytesFor = (valueBytes: number, megabytes: number): number => valueBytes < 1_000 ? megabytes / 4 : megabytes

/**
 * Every cell of the throughput table: sizes by codecs at 4 partitions, then partitions, topics and producers' batches at
 * 1 KB and lz4.
 */
export const allCells = (megabytes: number): ReadonlyArray<Shape> => [
  ...SIZES.flatMap((valueBytes) =>
    CODECS.map((codec) =>
      makeShape({ name: `${sizeName(valueBytes)}-${codec}`, valueBytes, codec }, megabytesFor(valueBytes, megabytes))
    )
  ),
  makeShape({ name: "partitions-1", partitions: 1 }, megabytes),
  makeShape({ name: "partitions-64", partitions: 64 }, megabytes),
  makeShape({ name: "topics-100", topics: 100, partitions: 1 }, megabytes),
  makeShape({ name: "topics-1000", topics: 1_000, partitions: 1 }, megabytes),
  makeShape({ name: "batches-16KB", batchBytes: 16_384 }, megabytes)
]

/** One line through each dimension, for a run that must not take an hour. */
export const someCells: ReadonlyArray<string> = [
  "100B-lz4",
  "1KB-none",
  "1KB-lz4",
  "1KB-zstd",
  "100KB-lz4",
  "partitions-1",
  "partitions-64",
  "topics-100"
]
