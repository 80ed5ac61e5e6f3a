/** Reads entries of a zip file (a jar): stored or deflated ones, in an archive below 4 GiB. Enough for Kafka's jars. */
import { readFileSync } from "node:fs"
import { inflateRawSync } from "node:zlib"

const END = 0x06054b50
const ENTRY = 0x02014b50

/** Where the central directory begins, and how many entries it has. The end record is last, before a comment. */
const directory = (zip: Buffer, path: string): { readonly at: number; readonly count: number } => {
  for (let at = zip.length - 22; at >= Math.max(0, zip.length - 22 - 0xffff); at--) {
    if (zip.readUInt32LE(at) === END) return { at: zip.readUInt32LE(at + 16), count: zip.readUInt16LE(at + 10) }
  }
  throw new Error(`${path} is not a zip file`)
}

const content = (zip: Buffer, entryAt: number): Buffer => {
  const method = zip.readUInt16LE(entryAt + 10)
  const size = zip.readUInt32LE(entryAt + 20)
  const local = zip.readUInt32LE(entryAt + 42)
  // The lengths in the local header count: its extra field may differ from the directory's.
  const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
  const bytes = zip.subarray(from, from + size)
  if (method === 0) return bytes
  if (method === 8) return inflateRawSync(bytes)
  throw new Error(`compression method ${method} of a zip entry is not known here`)
}

/** The entries whose name `wanted` accepts, by name. */
export const readZip = (path: string, wanted: (name: string) => boolean): ReadonlyMap<string, Buffer> => {
  const zip = readFileSync(path)
  const { at, count } = directory(zip, path)
  const found = new Map<string, Buffer>()
  let entry = at
  for (let i = 0; i < count; i++) {
    if (zip.readUInt32LE(entry) !== ENTRY) throw new Error(`${path}: the directory of the zip file is damaged`)
    const nameLength = zip.readUInt16LE(entry + 28)
    const name = zip.toString("utf8", entry + 46, entry + 46 + nameLength)
    if (wanted(name)) found.set(name, content(zip, entry))
    entry += 46 + nameLength + zip.readUInt16LE(entry + 30) + zip.readUInt16LE(entry + 32)
  }
  return found
}
