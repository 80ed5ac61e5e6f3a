/** The checksum of a batch: carried over a change of the header, and taken anew. */
import { carryCrc32c, crc32c } from "../../../src/wire/batch/crc32c.ts"
import { batchOf, type MicroCase } from "../microCase.ts"

const KB = 1024
const name = (bytes: number): string => bytes < KB * KB ? `${bytes / KB} KB` : `${bytes / KB / KB} MB`

/** What a rewrite changes is 36 bytes. */
const carry = (bytesBehind: number): MicroCase => ({
  name: `carry a CRC over ${name(bytesBehind)}`,
  warmUp: 5000,
  operations: 2000,
  prepare: () => {
    const difference = Buffer.from(Array.from({ length: 36 }, (_, n) => n * 7))
    return (n) => carryCrc32c(n, difference, bytesBehind)
  }
})

const whole = (bytes: number, operations: number): MicroCase => ({
  name: `CRC of ${name(bytes)}`,
  warmUp: operations,
  operations,
  prepare: () => {
    const records = batchOf(2 * bytes / KB, KB, "none").subarray(0, bytes)
    return () => crc32c(records)
  }
})

export const cases: ReadonlyArray<MicroCase> = [
  carry(16 * KB),
  carry(KB * KB),
  whole(16 * KB, 1000),
  whole(KB * KB, 10)
]
