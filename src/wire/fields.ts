/**
 * The words a Kafka message is declared with: each field says its type, the versions it lives in, where it may be
 * null, its tag, its default and whether it may be left out of a version that lacks it ("ignorable"), as Kafka's own
 * JSON definitions do. One declaration gives the encoder, the decoder (codec.ts) and the TypeScript types.
 *
 * Gotchas: fields are camelCase of Kafka's names; ids are base64url strings; int64 is a number (see bytes.ts). A
 * field that has a `default` may be left out when encoding. Everybody imports these through schema.ts.
 */
import { ProtocolError } from "./bytes.ts"

export type Primitive =
  | "bool"
  | "int8"
  | "int16"
  | "uint16"
  | "int32"
  | "uint32"
  | "int64"
  | "float64"
  | "string"
  | "uuid"
  | "bytes"
  | "records"
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
  /** An int64 that may be anything (a time that users choose): beyond 2^53 it is read as the nearest number. */
  readonly rounded: boolean
  /** undefined for a struct: its fields' defaults. */
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

/** "3", "3-7", "3+" or "none", as Kafka writes ranges. */
export const parseVersions = (text: string): VersionRange => {
  if (text === "none") return { min: 1, max: 0 }
  const parts = /^(\d+)(?:(\+)|-(\d+))?$/.exec(text)
  if (!parts) throw new ProtocolError({ what: `"${text}" is not a version range` })
  const min = Number(parts[1])
  return { min, max: parts[2] === "+" ? Infinity : Number(parts[3] ?? min) }
}
export const inRange = (range: VersionRange | null, version: number): boolean =>
  range !== null && version >= range.min && version <= range.max

interface Options<D> {
  /** Kafka's default; a field that has one may be left out when encoding. */
  readonly default?: D
  readonly tag?: number
  readonly tagged?: string
  readonly ignorable?: boolean
  readonly rounded?: boolean
}
type Has<O> = O extends { readonly default: unknown } ? true : false

const field = <T, Optional extends boolean>(
  type: FieldType,
  versions: string,
  nullable: string | null,
  options: Options<unknown>,
  implicit: unknown
): Field<T, Optional> => ({
  type,
  versions: parseVersions(versions),
  nullable: nullable === null ? null : parseVersions(nullable),
  tag: options.tag ?? null,
  tagged: options.tagged === undefined ? null : parseVersions(options.tagged),
  ignorable: options.ignorable ?? false,
  rounded: options.rounded ?? false,
  // Frozen: every decoded message that lacks the field shares it.
  defaultValue: frozen("default" in options ? options.default : implicit),
  optional: ("default" in options) as Optional
})
const frozen = (value: unknown): unknown => Array.isArray(value) ? Object.freeze(value) : value

const numeric =
  (type: Primitive) => <const O extends Options<number> = {}>(versions: string, options?: O): Field<number, Has<O>> =>
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
/** The id that says "no id". */
export const ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
export const uuid = <const O extends Options<string> = {}>(versions: string, options?: O): Field<string, Has<O>> =>
  field("uuid", versions, null, options ?? {}, ZERO_UUID)
export const str = <const O extends Options<string> = {}>(versions: string, options?: O): Field<string, Has<O>> =>
  field("string", versions, null, options ?? {}, "")
/** A string that may be null in the versions of `nullable`. */
export const nstr = <const O extends Options<string | null> = {}>(
  versions: string,
  nullable: string,
  options?: O
): Field<string | null, Has<O>> => field("string", versions, nullable, options ?? {}, "")
const EMPTY = Buffer.alloc(0)
export const bytes = <const O extends Options<Buffer> = {}>(versions: string, options?: O): Field<Buffer, Has<O>> =>
  field("bytes", versions, null, options ?? {}, EMPTY)
export const nbytes = <const O extends Options<Buffer | null> = {}>(
  versions: string,
  nullable: string,
  options?: O
): Field<Buffer | null, Has<O>> => field("bytes", versions, nullable, options ?? {}, EMPTY)
/**
 * Record batches, back to back; possibly cut short at the end by a broker (fetch). Null is taken in every version
 * and goes out as an empty set where the version has no null, because their default is null all the same.
 */
export const records = <const O extends Options<Buffer | null> = {}>(
  versions: string,
  nullable: string | null,
  options?: O
): Field<Buffer | null, Has<O>> => field("records", versions, nullable, options ?? {}, null)

type Element<E> = E extends Field<infer T> ? T : StructValue<E>
/** A field has a range under `versions`; a struct may have a field of that name. */
const isField = (element: object): element is Field<unknown> => {
  const versions: unknown = "versions" in element ? element.versions : null
  return typeof versions === "object" && versions !== null && "min" in versions
}
const elementType = (element: object): FieldType => isField(element) ? element.type : { struct: element as Fields }
/** A list of structs, or of the type of a primitive field (`arr("0+", int32("0+"))`). */
export const arr = <const E extends object, const O extends Options<ReadonlyArray<never>> = {}>(
  versions: string,
  element: E,
  options?: O
): Field<ReadonlyArray<Element<E>>, Has<O>> => field({ array: elementType(element) }, versions, null, options ?? {}, [])
/** A list that may be null in the versions of `nullable`. */
export const narr = <const E extends object, const O extends Options<ReadonlyArray<never> | null> = {}>(
  versions: string,
  nullable: string,
  element: E,
  options?: O
): Field<ReadonlyArray<Element<E>> | null, Has<O>> =>
  field({ array: elementType(element) }, versions, nullable, options ?? {}, [])

type StructOptions = Options<never> & { readonly optional?: true }
type IsOptional<O> = O extends { readonly optional: true } ? true : false
/** One nested struct. With `optional` it may be left out when encoding; absent, it decodes to its fields' defaults. */
export const struct = <const F extends object, const O extends StructOptions = {}>(
  versions: string,
  fields: F,
  options?: O
): Field<StructValue<F>, IsOptional<O>> => ({
  ...field<StructValue<F>, boolean>({ struct: fields as unknown as Fields }, versions, null, options ?? {}, undefined),
  optional: (options?.optional === true) as IsOptional<O>
})
/** A struct that may be null in the versions of `nullable`. */
export const nstruct = <const F extends object, const O extends Options<null> = {}>(
  versions: string,
  nullable: string,
  fields: F,
  options?: O
): Field<StructValue<F> | null, Has<O>> =>
  field({ struct: fields as unknown as Fields }, versions, nullable, options ?? {}, undefined)
