/**
 * Compiles declared fields (fields.ts) to closures that read and write one version of a message, once a version; a
 * message then costs one call a field, and no decision that its version has made already.
 *
 * Guarantees: reading takes at most what the buffer holds, whatever it announces; writing refuses what the version
 * cannot say (a null, a number out of range, a value in a field that the version lacks) instead of sending something
 * else. Failures are ProtocolErrors that name the field.
 */
import { type ByteReader, ByteWriter, ProtocolError } from "./bytes.ts"
import { type Field, type Fields, type FieldType, inRange, type Primitive } from "./fields.ts"

export type Read = (reader: ByteReader) => unknown
export type Write = (writer: ByteWriter, value: unknown) => void

/** Where in which message a closure stands. */
interface Place {
  /** "topics.partitions.index" */
  readonly path: string
  readonly version: number
  readonly flexible: boolean
}
const inside = (at: Place, key: string): Place => ({ ...at, path: at.path === "" ? key : `${at.path}.${key}` })

type Fixed = Exclude<Primitive, "string" | "bytes" | "records">

const isNull = (at: Place, allowed: boolean): null => {
  if (!allowed) throw new ProtocolError({ what: `${at.path} is null where the protocol does not allow it` })
  return null
}

// Kafka's limit for every string, in flexible versions too.
const MAX_STRING = 0x7fff
const tooLong = (at: Place, length: number): ProtocolError =>
  new ProtocolError({ what: `${at.path} is a string of ${length} bytes, more than Kafka allows (${MAX_STRING})` })

/* Reading */

const readFixed: { readonly [T in Fixed]: Read } = {
  bool: (r) => r.bool(),
  int8: (r) => r.int8(),
  int16: (r) => r.int16(),
  uint16: (r) => r.uint16(),
  int32: (r) => r.int32(),
  uint32: (r) => r.uint32(),
  int64: (r) => r.int64(),
  float64: (r) => r.float64(),
  uuid: (r) => r.uuid()
}

const rounded64: Read = (r) => r.rounded64()

const stringReader = (at: Place, nullable: boolean): Read => (r) => {
  const length = at.flexible ? r.uvarint() - 1 : r.int16()
  if (length < 0) return isNull(at, nullable)
  if (length > MAX_STRING) throw tooLong(at, length)
  return r.text(length)
}

const bytesReader = (at: Place, nullable: boolean): Read => (r) => {
  const length = at.flexible ? r.uvarint() - 1 : r.int32()
  return length < 0 ? isNull(at, nullable) : r.slice(length)
}

const arrayReader = (element: FieldType, at: Place, nullable: boolean): Read => {
  const read = typeReader(element, at, false)
  return (r) => {
    const count = at.flexible ? r.uvarint() - 1 : r.int32()
    if (count < 0) return isNull(at, nullable)
    // Every element takes a byte at least: a larger count is a lie.
    if (count > r.remaining) {
      throw new ProtocolError({ what: `${at.path} announces ${count} elements in ${r.remaining} bytes` })
    }
    const list: Array<unknown> = []
    for (let i = 0; i < count; i++) list.push(read(r))
    return list
  }
}

const typeReader = (type: FieldType, at: Place, nullable: boolean): Read => {
  if (typeof type === "object") {
    if ("array" in type) return arrayReader(type.array, at, nullable)
    const read = structReader(type.struct, at)
    return nullable ? (r) => (r.int8() < 0 ? null : read(r)) : read
  }
  if (type === "string") return stringReader(at, nullable)
  if (type === "bytes") return bytesReader(at, nullable)
  // Brokers answer an empty record set as null in versions that do not name it nullable.
  if (type === "records") return bytesReader(at, true)
  return readFixed[type]
}

/** The value of a field that is not there. */
const absent = (f: Field<unknown>): unknown =>
  f.defaultValue === undefined && typeof f.type === "object" && "struct" in f.type
    ? Object.freeze(Object.fromEntries(Object.entries(f.type.struct).map(([key, inner]) => [key, absent(inner)])))
    : f.defaultValue

const isTagged = (f: Field<unknown>, at: Place): boolean =>
  f.tag !== null && at.flexible && inRange(f.tagged, at.version)

/** What a struct's tag means: which field, how to read it. */
type Tags = ReadonlyMap<number, { readonly key: string; readonly read: Read }>

const readTagged = (r: ByteReader, tags: Tags, into: Record<string, unknown>): void => {
  const count = r.uvarint()
  for (let i = 0; i < count; i++) {
    const known = tags.get(r.uvarint())
    const inner = r.window(r.uvarint())
    if (known === undefined) continue
    into[known.key] = known.read(inner)
    if (inner.remaining > 0) {
      throw new ProtocolError({ what: `${known.key}: ${inner.remaining} bytes of the tagged field are left over` })
    }
  }
}

/** Reads a struct: every field declared is in the value, in the order of the declaration. */
export const structReader = (fields: Fields, at: Place): Read => {
  const plain: Array<{ readonly key: string; readonly read: Read }> = []
  const tags = new Map<number, { key: string; read: Read }>()
  for (const [key, f] of Object.entries(fields) as Array<[string, Field<unknown>]>) {
    const missing = absent(f)
    const here = inside(at, key)
    const lives = inRange(f.versions, at.version)
    const known = f.rounded ? rounded64 : typeReader(f.type, here, inRange(f.nullable, at.version))
    const read = lives ? known : () => missing
    if (lives && isTagged(f, at)) {
      tags.set(f.tag as number, { key, read })
      plain.push({ key, read: () => missing })
    } else plain.push({ key, read })
  }
  return (r) => {
    const value: Record<string, unknown> = {}
    for (const p of plain) value[p.key] = p.read(r)
    if (at.flexible) {
      if (tags.size === 0) r.skipTaggedFields()
      else readTagged(r, tags, value)
    }
    return value
  }
}

/* Writing */

const integer =
  (min: number, max: number, put: (w: ByteWriter, value: number) => void) => (at: Place): Write => (w, v) => {
    if (!Number.isInteger(v) || (v as number) < min || (v as number) > max) {
      throw new ProtocolError({ what: `${at.path} is ${String(v)}, not an integer from ${min} to ${max}` })
    }
    put(w, v as number)
  }
const always = (write: Write) => (): Write => write

const writeFixed: { readonly [T in Fixed]: (at: Place) => Write } = {
  bool: always((w, v) => w.bool(v as boolean)),
  int8: integer(-0x80, 0x7f, (w, v) => w.int8(v)),
  int16: integer(-0x8000, 0x7fff, (w, v) => w.int16(v)),
  uint16: integer(0, 0xffff, (w, v) => w.uint16(v)),
  int32: integer(-0x8000_0000, 0x7fff_ffff, (w, v) => w.int32(v)),
  uint32: integer(0, 0xffff_ffff, (w, v) => w.uint32(v)),
  int64: integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, (w, v) => w.int64(v)),
  float64: always((w, v) => w.float64(v as number)),
  uuid: always((w, v) => w.uuid(v as string))
}

const stringWriter = (at: Place, nullable: boolean): Write => {
  const length = (w: ByteWriter, value: number) => (at.flexible ? w.uvarint(value + 1) : w.int16(value))
  return (w, v) => {
    if (v === null) {
      isNull(at, nullable)
      return length(w, -1)
    }
    const text = Buffer.from(v as string, "utf8")
    if (text.length > MAX_STRING) throw tooLong(at, text.length)
    length(w, text.length)
    w.raw(text)
  }
}

const writeLength = (w: ByteWriter, length: number, at: Place): void =>
  at.flexible ? w.uvarint(length + 1) : w.int32(length)

const bytesWriter = (at: Place, nullable: boolean): Write => (w, v) => {
  if (v === null) {
    isNull(at, nullable)
    return writeLength(w, -1, at)
  }
  writeLength(w, (v as Buffer).length, at)
  w.chunk(v as Buffer)
}

const NO_RECORDS = Buffer.alloc(0)
const recordsWriter = (at: Place, nullable: boolean): Write => {
  const write = bytesWriter(at, nullable)
  return nullable ? write : (w, v) => write(w, v ?? NO_RECORDS)
}

const arrayWriter = (element: FieldType, at: Place, nullable: boolean): Write => {
  const write = typeWriter(element, at, false)
  return (w, v) => {
    if (v === null) {
      isNull(at, nullable)
      return writeLength(w, -1, at)
    }
    const list = v as ReadonlyArray<unknown>
    writeLength(w, list.length, at)
    for (const item of list) write(w, item)
  }
}

const typeWriter = (type: FieldType, at: Place, nullable: boolean): Write => {
  if (typeof type === "object") {
    if ("array" in type) return arrayWriter(type.array, at, nullable)
    const write = structWriter(type.struct, at)
    return (w, v) => {
      if (nullable) w.int8(v === null ? -1 : 1)
      if (v === null) isNull(at, nullable)
      else write(w, v)
    }
  }
  if (type === "string") return stringWriter(at, nullable)
  if (type === "bytes") return bytesWriter(at, nullable)
  if (type === "records") return recordsWriter(at, nullable)
  return writeFixed[type](at)
}

const isDefault = (value: unknown, f: Field<unknown>): boolean => {
  if (value === undefined || value === f.defaultValue) return true
  if (value === null) return false
  if (Array.isArray(value)) return value.length === 0 && Array.isArray(f.defaultValue)
  if (Buffer.isBuffer(value)) return Buffer.isBuffer(f.defaultValue) && value.equals(f.defaultValue)
  if (typeof f.type === "string" || !("struct" in f.type) || f.defaultValue !== undefined) return false
  const given = value as Record<string, unknown>
  return Object.entries(f.type.struct).every(([key, inner]) => isDefault(given[key], inner))
}

interface Slot {
  readonly key: string
  readonly path: string
  readonly field: Field<unknown>
  readonly write: Write
  /** What goes out when the caller leaves the field out. */
  readonly missing: unknown
}

/** Kafka's rule: a field that equals its default stays out, and tags are in ascending order. */
const writeTagged = (w: ByteWriter, slots: ReadonlyArray<Slot>, value: Record<string, unknown>): void => {
  const present = slots.filter((slot) => !isDefault(value[slot.key], slot.field))
  w.uvarint(present.length)
  for (const slot of present) {
    const inner = new ByteWriter()
    slot.write(inner, value[slot.key])
    w.uvarint(slot.field.tag as number)
    w.uvarint(inner.length)
    for (const piece of inner.chunks()) w.chunk(piece)
  }
}

const refuseLost = (lost: ReadonlyArray<Slot>, value: Record<string, unknown>, at: Place): void => {
  for (const slot of lost) {
    if (!isDefault(value[slot.key], slot.field)) {
      throw new ProtocolError({ what: `${slot.path} cannot be sent in version ${at.version} of the message` })
    }
  }
}

/** Writes a struct; fields left out go out with their default. */
export const structWriter = (fields: Fields, at: Place): Write => {
  const plain: Array<Slot> = []
  const tagged: Array<Slot> = []
  const lost: Array<Slot> = []
  for (const [key, f] of Object.entries(fields) as Array<[string, Field<unknown>]>) {
    const here = inside(at, key)
    const write = typeWriter(f.type, here, inRange(f.nullable, at.version))
    const slot = { key, path: here.path, field: f, write, missing: absent(f) }
    if (inRange(f.versions, at.version)) (isTagged(f, at) ? tagged : plain).push(slot)
    else if (!f.ignorable) lost.push(slot)
  }
  tagged.sort((a, b) => (a.field.tag as number) - (b.field.tag as number))
  return (w, v) => {
    const value = v as Record<string, unknown>
    refuseLost(lost, value, at)
    for (const slot of plain) {
      const given = value[slot.key]
      slot.write(w, given === undefined ? slot.missing : given)
    }
    if (at.flexible) writeTagged(w, tagged, value)
  }
}
