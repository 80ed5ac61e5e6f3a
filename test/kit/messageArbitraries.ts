/**
 * Random values of any declared message, for one version: what a caller may pass to `encode` (fields with a default
 * sometimes left out), and what `decode` must then give back.
 */
import fc from "fast-check"
import { type Field, type Fields, type FieldType, inRange, type Primitive } from "../../src/wire/schema.ts"

const uuid = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString("base64url"))
// Some beyond 1024 bytes: those travel between the pieces that are written, not inside.
const bytes = fc.oneof(
  { weight: 4, arbitrary: fc.uint8Array({ maxLength: 12 }).map((b) => Buffer.from(b)) },
  { weight: 1, arbitrary: fc.integer({ min: 1020, max: 3000 }).map((size) => Buffer.alloc(size, size)) }
)
const primitive: { readonly [P in Primitive]: fc.Arbitrary<unknown> } = {
  bool: fc.boolean(),
  int8: fc.integer({ min: -0x80, max: 0x7f }),
  int16: fc.integer({ min: -0x8000, max: 0x7fff }),
  uint16: fc.integer({ min: 0, max: 0xffff }),
  int32: fc.integer({ min: -0x8000_0000, max: 0x7fff_ffff }),
  uint32: fc.integer({ min: 0, max: 0xffff_ffff }),
  int64: fc.oneof(fc.maxSafeInteger(), fc.integer()),
  float64: fc.double({ noNaN: true }),
  string: fc.oneof(fc.string({ unit: "grapheme", maxLength: 8 }), fc.constant("x".repeat(200))),
  uuid,
  bytes,
  records: bytes
}

const typeValue = (type: FieldType, version: number): fc.Arbitrary<unknown> => {
  if (typeof type === "string") return primitive[type]
  if ("struct" in type) return messageValue(type.struct, version)
  return fc.array(typeValue(type.array, version), { maxLength: 3 })
}

const fieldValue = (field: Field<unknown>, version: number): fc.Arbitrary<unknown> => {
  const value = typeValue(field.type, version)
  const orNull = inRange(field.nullable, version) ? fc.option(value, { freq: 4 }) : value
  return field.optional ? fc.option(orNull, { nil: undefined, freq: 4 }) : orNull
}

/** A value of these fields; those that the version lacks are left out. */
export const messageValue = (fields: Fields, version: number): fc.Arbitrary<Record<string, unknown>> => {
  const here = (Object.entries(fields) as Array<[string, Field<unknown>]>).filter(([, f]) =>
    inRange(f.versions, version)
  )
  return fc.record(Object.fromEntries(here.map(([key, f]) => [key, fieldValue(f, version)])))
}

const isStruct = (type: FieldType): type is { readonly struct: Fields } => typeof type === "object" && "struct" in type

const expectedValue = (value: unknown, type: FieldType, version: number): unknown => {
  if (value === null || typeof type === "string") return value
  if ("struct" in type) return expectedMessage(value as Record<string, unknown>, type.struct, version)
  return (value as ReadonlyArray<unknown>).map((element) => expectedValue(element, type.array, version))
}
const fallback = (field: Field<unknown>, version: number): unknown =>
  field.defaultValue === undefined && isStruct(field.type)
    ? expectedMessage({}, field.type.struct, version)
    : field.defaultValue

/** The value with every declared field, in order, those left out with their default. */
export const expectedMessage = (
  value: Readonly<Record<string, unknown>>,
  fields: Fields,
  version: number
): Record<string, unknown> =>
  Object.fromEntries((Object.entries(fields) as Array<[string, Field<unknown>]>).map(([key, field]) => {
    const given = value[key]
    return [key, given === undefined ? fallback(field, version) : expectedValue(given, field.type, version)]
  }))
