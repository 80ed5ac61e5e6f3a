/**
 * Digests of sets of records in which order does not matter and every copy counts: the sum, modulo 2^128, of a 128-bit
 * hash of each record, kept in buckets by bits of the hash. Two sets with the same sums in a bucket hold the same
 * records there, but for a chance of 2^-128; where sums differ, the bucket says which part of the records to look at.
 *
 * Constant memory: 24 bytes a bucket, however many records there are. Plain loops: this runs once a record.
 */
import { hash as digestOf } from "node:crypto"
import type { Rec } from "../../wire/batch/records.ts"

/** First pass: by the lowest byte of the hash. */
export const BUCKETS = 256
/** Second pass: by the next two bytes. */
export const LEAVES = 65_536

export const bucketOf = (words: Uint32Array): number => (words[0] as number) & 0xff
export const leafOf = (words: Uint32Array): number => (words[0] as number) >>> 8 & 0xffff

/** What of a record is compared. */
export interface Compared {
  /** False where the target writes its own time (LogAppendTime). */
  readonly timestamps: boolean
}

/** Hashes records: key, value, headers (in order) and timestamp; null and empty are different. */
export class RecordHasher {
  #scratch = Buffer.allocUnsafe(65_536)
  /** The hash of the last record. */
  readonly words = new Uint32Array(4)
  readonly #compared: Compared

  constructor(compared: Compared) {
    this.#compared = compared
  }

  #room(size: number): void {
    if (this.#scratch.length < size) this.#scratch = Buffer.allocUnsafe(size * 2)
  }

  #put(bytes: Buffer | null, at: number): number {
    this.#scratch.writeInt32LE(bytes === null ? -1 : bytes.length, at)
    if (bytes !== null) bytes.copy(this.#scratch, at + 4)
    return at + 4 + (bytes?.length ?? 0)
  }

  /** Fills `words`. */
  hash(record: Pick<Rec, "key" | "value" | "headers" | "timestamp">): void {
    let size = 24 + (record.key?.length ?? 0) + (record.value?.length ?? 0)
    for (const header of record.headers) size += 8 + header.key.length + (header.value?.length ?? 0)
    this.#room(size)
    this.#scratch.writeBigInt64LE(this.#compared.timestamps ? record.timestamp : 0n, 0)
    let at = this.#put(record.value, this.#put(record.key, 8))
    for (const header of record.headers) at = this.#put(header.value, this.#put(header.key, at))
    const found = digestOf("sha256", this.#scratch.subarray(0, at), "buffer")
    for (let i = 0; i < 4; i++) this.words[i] = found.readUInt32LE(i * 4)
  }
}

/** The hash as text, for maps. */
export const hashName = (words: Uint32Array): string => `${words[0]}.${words[1]}.${words[2]}.${words[3]}`

/** Counts and sums by bucket. */
export class Sums {
  readonly #counts: Float64Array
  readonly #limbs: Uint32Array
  total = 0

  constructor(buckets: number) {
    this.#counts = new Float64Array(buckets)
    this.#limbs = new Uint32Array(buckets * 4)
  }

  add(bucket: number, words: Uint32Array): void {
    const at = bucket * 4
    let carry = 0
    for (let i = 0; i < 4; i++) {
      const sum = (this.#limbs[at + i] as number) + (words[i] as number) + carry
      this.#limbs[at + i] = sum
      carry = sum > 0xffff_ffff ? 1 : 0
    }
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.total++
  }

  countOf(bucket: number): number {
    return this.#counts[bucket] as number
  }

  /** The buckets in which the two do not hold the same records. */
  differing(other: Sums): ReadonlyArray<number> {
    const found: Array<number> = []
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      let same = this.#counts[bucket] === other.#counts[bucket]
      for (let i = bucket * 4; same && i < bucket * 4 + 4; i++) same = this.#limbs[i] === other.#limbs[i]
      if (!same) found.push(bucket)
    }
    return found
  }
}
