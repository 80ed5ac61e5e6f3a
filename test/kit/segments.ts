/**
 * Record batches as a broker has them on disk: bytes judged without any client. A batch that passed through a mirror
 * has the same record section; only its header may differ (offsets, leader epoch, producer, sequence, CRC).
 *
 * Reads what the broker has written, not what it has flushed: both see the same file. Format v2 only, as brokers since
 * 4.0 write nothing else.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const headerBytes = 61
const codecs = ["none", "gzip", "snappy", "lz4", "zstd"] as const

export interface SegmentBatch {
  readonly baseOffset: number
  readonly lastOffset: number
  readonly recordCount: number
  readonly codec: (typeof codecs)[number]
  readonly timestampType: "create" | "logAppend"
  readonly isTransactional: boolean
  readonly isControl: boolean
  readonly baseTimestamp: bigint
  readonly maxTimestamp: bigint
  readonly producerId: bigint
  readonly producerEpoch: number
  readonly baseSequence: number
  /** The records, compressed as they are: all after the header. */
  readonly records: Buffer
}

const parse = (bytes: Buffer): SegmentBatch => {
  const attributes = bytes.readInt16BE(21)
  const baseOffset = Number(bytes.readBigInt64BE(0))
  return {
    baseOffset,
    lastOffset: baseOffset + bytes.readInt32BE(23),
    recordCount: bytes.readInt32BE(57),
    codec: codecs[attributes & 7] ?? "none",
    timestampType: (attributes & 8) === 0 ? "create" : "logAppend",
    isTransactional: (attributes & 16) !== 0,
    isControl: (attributes & 32) !== 0,
    baseTimestamp: bytes.readBigInt64BE(27),
    maxTimestamp: bytes.readBigInt64BE(35),
    producerId: bytes.readBigInt64BE(43),
    producerEpoch: bytes.readInt16BE(51),
    baseSequence: bytes.readInt32BE(53),
    records: bytes.subarray(headerBytes)
  }
}

/** Every batch of a partition, control batches too, in order. An unfinished one at the end is left out. */
export const segmentBatches = (
  cluster: { readonly logDir: string },
  topic: string,
  partition: number,
  brokerId = 1
): ReadonlyArray<SegmentBatch> => {
  const folder = join(cluster.logDir, `data-${brokerId}`, `${topic}-${partition}`)
  const files = readdirSync(folder).filter((name) => name.endsWith(".log")).toSorted()
  return files.flatMap((name) => {
    const bytes = readFileSync(join(folder, name))
    const batches: Array<SegmentBatch> = []
    let at = 0
    while (at + headerBytes <= bytes.length) {
      const end = at + 12 + bytes.readInt32BE(at + 8)
      if (end > bytes.length || end < at + headerBytes) break
      batches.push(parse(bytes.subarray(at, end)))
      at = end
    }
    return batches
  })
}
