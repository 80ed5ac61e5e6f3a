/**
 * Whether two sides hold the same records: per partition their number, and sums over the records' checksums that do not
 * depend on their order. Pure.
 *
 * A lost, doubled, altered or misplaced record changes a count or a sum. Sums of CRC-32 can be fooled on purpose, and
 * by chance once in 2^32; this is a check on mirrors without faults, the test suites judge record by record.
 */
import { crc32 } from "node:zlib"

export interface PartitionPrint {
  readonly count: number
  /** Modulo 2^48. */
  readonly contentSum: number
  /** Exclusive or of the checksums, mixed: two records that swap a bit change it, a sum may not. */
  readonly contentMix: number
  readonly timestampSum: number
  /** Records with the header that was asked for. */
  readonly headers: number
}

export interface RecordLike {
  readonly partition: number
  readonly key: Buffer | string | null | undefined
  readonly value: Buffer | null
  readonly timestamp?: number | undefined
  readonly header: boolean
}

/** By "topic number/partition"; topics in the order in which they were given. */
export type Fingerprint = Readonly<Record<string, PartitionPrint>>

const MODULUS = 2 ** 48

interface Building {
  count: number
  contentSum: number
  contentMix: number
  timestampSum: number
  headers: number
}

export interface Printer {
  readonly add: (topic: number, record: RecordLike) => void
  readonly total: () => number
  readonly result: () => Fingerprint
}

/** Which bytes are the key's and which the value's is part of it. */
const checksum = (record: RecordLike): number => {
  const key = record.key === null || record.key === undefined ? Buffer.alloc(0) : Buffer.from(record.key)
  const head = crc32(`${key.length}|${record.value === null ? -1 : record.value.length}|`)
  return crc32(record.value ?? Buffer.alloc(0), crc32(key, head))
}

export const makePrinter = (): Printer => {
  const found = new Map<string, Building>()
  let total = 0
  return {
    add: (topic, record) => {
      const place = `${topic}/${record.partition}`
      let print = found.get(place)
      if (print === undefined) {
        print = { count: 0, contentSum: 0, contentMix: 0, timestampSum: 0, headers: 0 }
        found.set(place, print)
      }
      const sum = checksum(record)
      total++
      print.count++
      print.contentSum = (print.contentSum + sum) % MODULUS
      print.contentMix = (print.contentMix ^ Math.imul(sum ^ (sum >>> 15), 0x85eb_ca6b)) >>> 0
      print.timestampSum = (print.timestampSum + (record.timestamp ?? 0)) % MODULUS
      if (record.header) print.headers++
    },
    total: () => total,
    result: () => Object.fromEntries([...found].toSorted(([a], [b]) => a < b ? -1 : 1))
  }
}

const records = (print: Fingerprint): number => Object.values(print).reduce((sum, { count }) => sum + count, 0)

/**
 * What is not the same, in sentences; empty: the figure may be believed.
 * @param headers how many records of the target must have the header
 */
export const differences = (
  source: Fingerprint,
  target: Fingerprint,
  headers: "none" | "all"
): ReadonlyArray<string> => {
  const places = new Set([...Object.keys(source), ...Object.keys(target)])
  const found: Array<string> = []
  for (const place of places) {
    const [a, b] = [source[place], target[place]]
    if (a === undefined || b === undefined) {
      found.push(`${place} has ${a?.count ?? 0} records on the source and ${b?.count ?? 0} on the target`)
    } else if (a.count !== b.count) {
      found.push(`${place} has ${a.count} records on the source and ${b.count} on the target`)
    } else if (a.contentSum !== b.contentSum || a.contentMix !== b.contentMix) {
      found.push(`${place} has as many records, and not the same ones`)
    } else if (a.timestampSum !== b.timestampSum) found.push(`${place} has other timestamps`)
    else if (b.headers !== (headers === "all" ? b.count : 0)) {
      found.push(`${place} has ${b.headers} records with the transform's header, of ${b.count}`)
    }
  }
  if (records(source) === 0) found.push("the source has no records: nothing is proven")
  return found
}
