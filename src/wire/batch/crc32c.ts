/**
 * CRC-32C (Castagnoli), the checksum of record batches, and the arithmetic that carries one over a header change.
 *
 * Guarantees: values are unsigned 32-bit numbers. `crc32c` gives the same with and without the native add-on.
 * `carryCrc32c` never looks at the bytes behind the change, so a checksum that was wrong before stays wrong by
 * the same difference: it cannot make damaged records look sound.
 *
 * Why it works: a CRC is affine over GF(2). For two messages of equal length, crc(a) ^ crc(b) depends on a ^ b
 * alone, and zeros that follow a difference only multiply it by a fixed power of x, here looked up by length.
 */
import { createRequire } from "node:module"

/** The polynomial 0x1EDC6F41 with its bits reversed. */
const polynomial = 0x82f6_3b78

/** Eight tables of 256: table k is the effect of a byte that k more bytes follow. */
const slices: Int32Array = (() => {
  const tables = new Int32Array(8 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ polynomial
    tables[byte] = crc
  }
  for (let i = 256; i < tables.length; i++) {
    const before = tables[i - 256] as number
    tables[i] = (before >>> 8) ^ (tables[before & 0xff] as number)
  }
  return tables
})()

/** One register run over bytes: no initial value, no final inversion, so it is linear. */
const run = (register: number, bytes: Uint8Array, start: number, end: number): number => {
  const t = slices
  let crc = register
  let at = start
  // Eight bytes a turn (slicing by 8); the index arithmetic is inside the tables by construction.
  for (const stop = end - 7; at < stop; at += 8) {
    const low = crc ^ ((bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24))
    crc = (t[1792 + (low & 0xff)] as number) ^ (t[1536 + ((low >>> 8) & 0xff)] as number) ^
      (t[1280 + ((low >>> 16) & 0xff)] as number) ^ (t[1024 + (low >>> 24)] as number) ^
      (t[768 + (bytes[at + 4] as number)] as number) ^ (t[512 + (bytes[at + 5] as number)] as number) ^
      (t[256 + (bytes[at + 6] as number)] as number) ^ (t[bytes[at + 7] as number] as number)
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ (t[(crc ^ (bytes[at] as number)) & 0xff] as number)
  return crc
}

/** The portable implementation, exported so that a test can hold it against the native one. */
export const crc32cInTypeScript = (bytes: Uint8Array, start = 0, end = bytes.length): number =>
  ~run(-1, bytes, start, end) >>> 0

type Native = (bytes: Uint8Array) => number

/** null where the platform has no prebuilt binary; then the tables do it all. */
export const crc32cNative: Native | null = (() => {
  try {
    const found = createRequire(import.meta.url)("@node-rs/crc32") as { readonly crc32c: Native }
    return (bytes) => found.crc32c(bytes)
  } catch {
    return null
  }
})()

/** Below this many bytes the way into the add-on costs more than the tables. */
const worthTheCall = 512

/** The CRC-32C of bytes[start, end). */
export const crc32c = (bytes: Uint8Array, start = 0, end = bytes.length): number =>
  crc32cNative === null || end - start < worthTheCall
    ? crc32cInTypeScript(bytes, start, end)
    : crc32cNative(bytes.subarray(start, end))

/**
 * Operator k multiplies a register by what 2^k zero bytes do to it: four tables of 256, one per byte of the
 * register. Built when first needed (4 KB each); a batch has fewer than 2^31 bytes, so there are at most 31.
 */
const zeroOperators: Array<Int32Array> = []

const apply = (operator: Int32Array, register: number): number =>
  (operator[register & 0xff] as number) ^ (operator[256 + ((register >>> 8) & 0xff)] as number) ^
  (operator[512 + ((register >>> 16) & 0xff)] as number) ^ (operator[768 + (register >>> 24)] as number)

const makeOperator = (step: (register: number) => number): Int32Array => {
  const operator = new Int32Array(4 * 256)
  for (let byte = 0; byte < 4; byte++) {
    for (let value = 0; value < 256; value++) operator[byte * 256 + value] = step(value << (byte * 8))
  }
  return operator
}

const operatorFor = (k: number): Int32Array => {
  const known = zeroOperators[k]
  if (known !== undefined) return known
  const made = k === 0
    ? makeOperator((register) => (register >>> 8) ^ (slices[register & 0xff] as number))
    : ((half) => makeOperator((register) => apply(half, apply(half, register))))(operatorFor(k - 1))
  zeroOperators[k] = made
  return made
}

/**
 * The checksum after a change, from the checksum before it.
 *
 * @param before the checksum before the change
 * @param difference old bytes XOR new bytes, where they changed
 * @param bytesBehind how many bytes the checksum covers after the changed ones (0 to 2^31 - 1); they are not read
 */
export const carryCrc32c = (before: number, difference: Uint8Array, bytesBehind: number): number => {
  let register = run(0, difference, 0, difference.length)
  for (let k = 0, left = bytesBehind; left > 0; k++, left >>>= 1) {
    if ((left & 1) !== 0) register = apply(operatorFor(k), register)
  }
  return (before ^ register) >>> 0
}
