/**
 * Kafka messages as declarations: each field says its type, the versions it lives in, where it may be null, its
 * tag and its default, as Kafka's own JSON definitions do (kafka-clients.jar, common/message/*.json). One
 * declaration gives the encoder, the decoder and the TypeScript types, in both directions, so that a server
 * (src/embedded) speaks with the same words. test/wire/conformance.test.ts holds every declaration against
 * Kafka's JSON, field by field and version by version.
 *
 * Gotchas: fields are camelCase of Kafka's names; ids are base64url strings; int64 is a number (see bytes.ts);
 * `records` and `bytes` decode to slices of the answer, not copies.
 */
import { ByteReader, ByteWriter, ProtocolError } from "./bytes.ts"

export type Primitive = "bool" | "int8" | "int16" | "uint16" | "int32" | "uint32" | "int64" | "float64" | "string" | "uuid" | "bytes" | "records"
export type FieldType = Primitive | { readonly array: FieldType } | { readonly struct: Fields }

/** Inclusive; an open end is Infinity. */
export interface VersionRange {
  readonly min: number
  readonly max: number
}

export interface Field<T, Optional extends boolean = boolean> {
  readonly type: FieldType
  readonly versions: VersionRange
  readonly nullable: VersionRange | null
  readonly tag: number | null
  readonly tagged: VersionRange | null
  readonly ignorable: boolean
  readonly defaultValue: unknown
  readonly optional: Optional
  /** Only a type: what the field holds. */
  readonly _T?: T
}
export type Fields = Readonly<Record<string, Field<never>>> | Readonly<Record<string, Field<unknown>>>

/** What decoding gives: every field, those outside the version with their default. */
export type Decoded<F> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }
type OptionalKeys<F> = { [K in keyof F]: F[K] extends Field<infer _T, true> ? K : never }[keyof F]
type InputOf<T> = T extends ReadonlyArray<infer E> ? ReadonlyArray<InputOf<E>>
  : T extends { readonly __fields?: infer F } ? (unknown extends F ? T : Encoded<F>)
  : T
/** What encoding takes: fields with a default may be left out. */
export type Encoded<F> =
  & { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: F[K] extends Field<infer T> ? InputOf<T> : never }
  & { readonly [K in OptionalKeys<F>]?: F[K] extends Field<infer T> ? InputOf<T> : never }
type StructValue<F> = Decoded<F> & { readonly __fields?: F }

export const parseVersions = (text: string): VersionRange => {
  if (text === "none") return { min: 1, max: 0 }
  const open = /^(\d+)\+$/.exec(text)
  if (open) return { min: Number(open[1]), max: Infinity }
  const both = /^(\d+)(?:-(\d+))?$/.exec(text)
  if (!both) throw new ProtocolError({ what: `"${text}" is not a version range` })
  return { min: Number(both[1]), max: Number(both[2] ?? both[1]) }
}
const inRange = (range: VersionRange | null, version: number): boolean => range !== null && version >= range.min && version <= range.max

interface Options<D> {
  /** Kafka's default; a field that has one may be left out when encoding. */
  readonly default?: D
  readonly tag?: number
  readonly tagged?: string
  readonly ignorable?: boolean
}
type Has<O> = O extends { readonly default: unknown } ? true : false

const field = <T, Optional extends boolean>(type: FieldType, versions: string, nullable: string | null, options: Options<unknown>, implicit: unknown): Field<T, Optional> => ({
  type,
  versions: parseVersions(versions),
  nullable: nullable === null ? null : parseVersions(nullable),
  tag: options.tag ?? null,
  tagged: options.tagged === undefined ? null : parseVersions(options.tagged),
  ignorable: options.ignorable ?? false,
  defaultValue: "default" in options ? options.default : implicit,
  optional: ("default" in options) as Optional
})

const numeric = (type: Primitive) => <const O extends Options<number> = {}>(versions: string, options?: O): Field<number, Has<O>> =>
  field(type, versions, null, options ?? {}, 0)
export const int8 = numeric("int8")
export const int16 = numeric("int16")
export const uint16 = numeric("uint16")
export const int32 = numeric("int32")
export const uint32 = numeric("uint32")
export const int64 = numeric("int64")
export const float64 = numeric("float64")
export const bool = <const O extends Options<boolean> = {}>(versions: string, options?: O): Field<boolean, Has<O>> =>
  field("bool", versions, null, options ?? {}, false)
export const ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
export const uuid = <const O extends Options<string> = {}>(versions: string, options?: O): Field<string, Has<O>> =>
  field("uuid", versions, null, options ?? {}, ZERO_UUID)
export const str = <const O extends Options<string> = {}>(versions: string, options?: O): Field<string, Has<O>> =>
  field("string", versions, null, options ?? {}, "")
/** A string that may be null in the versions of `nullable`. */
export const nstr = <const O extends Options<string | null> = {}>(versions: string, nullable: string, options?: O): Field<string | null, Has<O>> =>
  field("string", versions, nullable, options ?? {}, "")
const EMPTY = Buffer.alloc(0)
export const bytes = <const O extends Options<Buffer> = {}>(versions: string, options?: O): Field<Buffer, Has<O>> =>
  field("bytes", versions, null, options ?? {}, EMPTY)
export const nbytes = <const O extends Options<Buffer | null> = {}>(versions: string, nullable: string, options?: O): Field<Buffer | null, Has<O>> =>
  field("bytes", versions, nullable, options ?? {}, EMPTY)
/** Record batches, back to back; possibly cut short at the end by a broker (fetch). */
export const records = <const O extends Options<Buffer | null> = {}>(versions: string, nullable: string | null, options?: O): Field<Buffer | null, Has<O>> =>
  field("records", versions, nullable, options ?? {}, null)

type Element<E> = E extends Field<infer T> ? T : StructValue<E>
const elementType = (element: object): FieldType =>
  "type" in element && "versions" in element ? (element as Field<unknown>).type : { struct: element as Fields }
/** A list of structs, or of the type of a primitive field (`arr("0+", int32("0+"))`). */
export const arr = <const E extends object, const O extends Options<ReadonlyArray<never>> = {}>(versions: string, element: E, options?: O): Field<ReadonlyArray<Element<E>>, Has<O>> =>
  field({ array: elementType(element) }, versions, null, options ?? {}, [])
export const narr = <const E extends object, const O extends Options<ReadonlyArray<never> | null> = {}>(versions: string, nullable: string, element: E, options?: O): Field<ReadonlyArray<Element<E>> | null, Has<O>> =>
  field({ array: elementType(element) }, versions, nullable, options ?? {}, [])
/** One nested struct. Left out when tagged and absent: it decodes to its fields' defaults. */
export const struct = <const F extends object, const O extends Options<never> = {}>(versions: string, fields: F, options?: O & { readonly optional?: true }): Field<StructValue<F>, O extends { readonly optional: true } ? true : false> =>
  ({ ...field({ struct: fields as unknown as Fields }, versions, null, options ?? {}, undefined), optional: options?.optional === true }) as Field<StructValue<F>, never>
export const nstruct = <const F extends object, const O extends Options<null> = {}>(versions: string, nullable: string, fields: F, options?: O): Field<StructValue<F> | null, Has<O>> =>
  field({ struct: fields as unknown as Fields }, versions, nullable, options ?? {}, undefined)

type Read = (reader: ByteReader) => unknown
type Write = (writer: ByteWriter, value: unknown) => void

const mayBeNull = (what: string, allowed: boolean): null => {
  if (!allowed) throw new ProtocolError({ what: `${what} is null where the protocol does not allow it` })
  return null
}

const readLength = (reader: ByteReader, flexible: boolean, short: boolean): number =>
  flexible ? reader.uvarint() - 1 : short ? reader.int16() : reader.int32()
const writeLength = (writer: ByteWriter, length: number, flexible: boolean, short: boolean): void => {
  if (flexible) return writer.uvarint(length + 1)
  if (!short) return writer.int32(length)
  if (length > 0x7fff) throw new ProtocolError({ what: `a string of ${length} bytes is longer than Kafka allows (32767)` })
  writer.int16(length)
}

const compileReader = (type: FieldType, name: string, version: number, flexible: boolean, nullable: boolean): Read => {
  if (typeof type === "string") {
    switch (type) {
      case "string":
        return (r) => {
          const length = readLength(r, flexible, true)
          return length < 0 ? mayBeNull(name, nullable) : r.text(length)
        }
      case "bytes":
      case "records":
        return (r) => {
          const length = readLength(r, flexible, false)
          // Brokers answer an empty record set as null in versions that do not name it nullable.
          return length < 0 ? (type === "records" ? null : mayBeNull(name, nullable)) : r.slice(length)
        }
      case "bool": return (r) => r.bool()
      case "int8": return (r) => r.int8()
      case "int16": return (r) => r.int16()
      case "uint16": return (r) => r.uint16()
      case "int32": return (r) => r.int32()
      case "uint32": return (r) => r.uint32()
      case "int64": return (r) => r.int64()
      case "float64": return (r) => r.float64()
      case "uuid": return (r) => r.uuid()
    }
  }
  if ("array" in type) {
    const element = compileReader(type.array, name, version, flexible, false)
    return (r) => {
      const count = readLength(r, flexible, false)
      if (count < 0) return mayBeNull(name, nullable)
      // Every element takes a byte at least: a larger count is a lie, and would be a huge allocation.
      if (count > r.remaining) throw new ProtocolError({ what: `${name} announces ${count} elements in ${r.remaining} bytes` })
      const list: Array<unknown> = []
      for (let i = 0; i < count; i++) list.push(element(r))
      return list
    }
  }
  const read = compileStructReader(type.struct, name, version, flexible)
  if (!nullable) return read
  return (r) => (r.int8() < 0 ? null : read(r))
}

/** The value of a field that is not there. */
const absent = (f: Field<unknown>, name: string, version: number): unknown =>
  f.defaultValue === undefined && typeof f.type === "object" && "struct" in f.type ? absentStruct(f.type.struct, name, version) : f.defaultValue
const absentStruct = (fields: Fields, name: string, version: number): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).map(([key, f]) => [key, absent(f as Field<unknown>, `${name}.${key}`, version)]))

const compileStructReader = (fields: Fields, name: string, version: number, flexible: boolean): Read => {
  const plain: Array<{ key: string; read: Read | null; absent: unknown }> = []
  const tagged = new Map<number, { key: string; read: Read }>()
  for (const [key, raw] of Object.entries(fields)) {
    const f = raw as Field<unknown>
    const path = name === "" ? key : `${name}.${key}`
    const gone = { key, read: null, absent: absent(f, path, version) }
    if (!inRange(f.versions, version)) {
      plain.push(gone)
      continue
    }
    const read = compileReader(f.type, path, version, flexible, inRange(f.nullable, version))
    if (f.tag !== null && flexible && inRange(f.tagged, version)) {
      plain.push(gone)
      tagged.set(f.tag, { key, read })
    } else plain.push({ key, read, absent: undefined })
  }
  return (r) => {
    const value: Record<string, unknown> = {}
    for (const p of plain) value[p.key] = p.read === null ? p.absent : p.read(r)
    if (flexible) {
      if (tagged.size === 0) r.skipTaggedFields()
      else {
        const count = r.uvarint()
        for (let i = 0; i < count; i++) {
          const known = tagged.get(r.uvarint())
          const size = r.uvarint()
          if (known === undefined) r.slice(size)
          else value[known.key] = known.read(new ByteReader(r.slice(size)))
        }
      }
    }
    return value
  }
}

const compileWriter = (type: FieldType, name: string, version: number, flexible: boolean, nullable: boolean): Write => {
  const nullLength = (w: ByteWriter, short: boolean) => {
    mayBeNull(name, nullable)
    writeLength(w, -1, flexible, short)
  }
  if (typeof type === "string") {
    switch (type) {
      case "string":
        return (w, v) => {
          if (v === null) return nullLength(w, true)
          const text = Buffer.from(v as string, "utf8")
          writeLength(w, text.length, flexible, true)
          w.raw(text)
        }
      case "bytes":
      case "records":
        return (w, v) => {
          if (v === null) {
            if (type === "records") return writeLength(w, -1, flexible, false)
            return nullLength(w, false)
          }
          writeLength(w, (v as Buffer).length, flexible, false)
          w.chunk(v as Buffer)
        }
      case "bool": return (w, v) => w.bool(v as boolean)
      case "int8": return (w, v) => w.int8(v as number)
      case "int16": return (w, v) => w.int16(v as number)
      case "uint16": return (w, v) => w.uint16(v as number)
      case "int32": return (w, v) => w.int32(v as number)
      case "uint32": return (w, v) => w.uint32(v as number)
      case "int64": return (w, v) => w.int64(v as number)
      case "float64": return (w, v) => w.float64(v as number)
      case "uuid": return (w, v) => w.uuid(v as string)
    }
  }
  if ("array" in type) {
    const element = compileWriter(type.array, name, version, flexible, false)
    return (w, v) => {
      if (v === null) return nullLength(w, false)
      const list = v as ReadonlyArray<unknown>
      writeLength(w, list.length, flexible, false)
      for (const item of list) element(w, item)
    }
  }
  const write = compileStructWriter(type.struct, name, version, flexible)
  if (!nullable) return write
  return (w, v) => {
    w.int8(v === null ? -1 : 1)
    if (v !== null) write(w, v)
  }
}

const isDefault = (value: unknown, f: Field<unknown>): boolean => {
  if (value === undefined || value === f.defaultValue) return true
  if (Array.isArray(value) && Array.isArray(f.defaultValue)) return value.length === 0 && f.defaultValue.length === 0
  if (Buffer.isBuffer(value) && Buffer.isBuffer(f.defaultValue)) return value.equals(f.defaultValue)
  if (typeof f.type === "object" && "struct" in f.type && value !== null && f.defaultValue === undefined) {
    return Object.entries(f.type.struct).every(([key, inner]) => isDefault((value as Record<string, unknown>)[key], inner as Field<unknown>))
  }
  return false
}

const compileStructWriter = (fields: Fields, name: string, version: number, flexible: boolean): Write => {
  const plain: Array<{ key: string; write: Write; fallback: unknown }> = []
  const tagged: Array<{ key: string; tag: number; write: Write; field: Field<unknown> }> = []
  const gone: Array<{ key: string; field: Field<unknown>; path: string }> = []
  for (const [key, raw] of Object.entries(fields)) {
    const f = raw as Field<unknown>
    const path = name === "" ? key : `${name}.${key}`
    if (!inRange(f.versions, version)) {
      if (!f.ignorable) gone.push({ key, field: f, path })
      continue
    }
    const write = compileWriter(f.type, path, version, flexible, inRange(f.nullable, version))
    if (f.tag !== null && flexible && inRange(f.tagged, version)) tagged.push({ key, tag: f.tag, write, field: f })
    else plain.push({ key, write, fallback: absent(f, path, version) })
  }
  tagged.sort((a, b) => a.tag - b.tag)
  return (w, v) => {
    const value = v as Record<string, unknown>
    for (const g of gone) {
      if (!isDefault(value[g.key], g.field)) {
        throw new ProtocolError({ what: `${g.path} cannot be sent in version ${version} of the message` })
      }
    }
    for (const p of plain) {
      const given = value[p.key]
      p.write(w, given === undefined ? p.fallback : given)
    }
    if (!flexible) return
    const present = tagged.filter((t) => !isDefault(value[t.key], t.field))
    w.uvarint(present.length)
    for (const t of present) {
      const inner = new ByteWriter()
      t.write(inner, value[t.key])
      w.uvarint(t.tag)
      w.uvarint(inner.length)
      for (const piece of inner.chunks()) w.raw(piece)
    }
  }
}

/** One direction of an API: name as Kafka's, the versions we speak, the first flexible version (Infinity: none). */
export interface Message<F> {
  readonly name: string
  readonly fields: F
  readonly versions: VersionRange
  readonly flexibleFrom: number
  readonly encode: (version: number, value: Encoded<F>) => ReadonlyArray<Buffer>
  /** Throws ProtocolError on bytes that do not fit, or when bytes are left over. */
  readonly decode: (version: number, bytes: Buffer) => Decoded<F>
}

const message = <const F extends object>(name: string, versions: string, flexibleFrom: number, fields: F): Message<F> => {
  const range = parseVersions(versions)
  const readers = new Map<number, Read>()
  const writers = new Map<number, Write>()
  const known = (version: number) => {
    if (!inRange(range, version)) throw new ProtocolError({ what: `${name} has no version ${version} here (${range.min} to ${range.max})` })
  }
  return {
    name,
    fields,
    versions: range,
    flexibleFrom,
    encode: (version, value) => {
      let write = writers.get(version)
      if (write === undefined) {
        known(version)
        write = compileStructWriter(fields as unknown as Fields, "", version, version >= flexibleFrom)
        writers.set(version, write)
      }
      const writer = new ByteWriter()
      write(writer, value)
      return writer.chunks()
    },
    decode: (version, buffer) => {
      let read = readers.get(version)
      if (read === undefined) {
        known(version)
        read = compileStructReader(fields as unknown as Fields, "", version, version >= flexibleFrom)
        readers.set(version, read)
      }
      const reader = new ByteReader(buffer)
      const value = read(reader)
      if (reader.remaining > 0) throw new ProtocolError({ what: `${name} version ${version}: ${reader.remaining} bytes are left over` })
      return value as Decoded<F>
    }
  }
}

/** What is needed to choose a version. */
export interface ApiHead {
  readonly key: number
  readonly name: string
  readonly versions: VersionRange
}

/** A request and its answer. */
export interface Api<Req, Res> extends ApiHead {
  readonly request: Message<Req>
  readonly response: Message<Res>
  readonly flexibleFrom: number
}

/** Declares an API: `versions` are those we speak ("1-2"), `flexible` the first flexible one as Kafka says. */
export const defineApi = <const Req extends object, const Res extends object>(definition: {
  readonly key: number
  readonly name: string
  readonly versions: string
  readonly flexible: number
  readonly request: Req
  readonly response: Res
}): Api<Req, Res> => ({
  key: definition.key,
  name: definition.name,
  request: message(`${definition.name}Request`, definition.versions, definition.flexible, definition.request),
  response: message(`${definition.name}Response`, definition.versions, definition.flexible, definition.response),
  versions: parseVersions(definition.versions),
  flexibleFrom: definition.flexible
})

export type RequestOf<A> = A extends Api<infer Req, infer _Res> ? Encoded<Req> : never
export type ResponseOf<A> = A extends Api<infer _Req, infer Res> ? Decoded<Res> : never
