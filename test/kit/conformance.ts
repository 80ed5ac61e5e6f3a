/**
 * Says where a declaration of ours differs from Kafka's definition: one sentence a difference, none when they agree.
 *
 * Both are unfolded to what one version of the message looks like, by code that shares nothing with src/wire, and
 * compared place by place: order, name, wire type, nullability, tag and default of what is there; whether what is not
 * there may be dropped silently ("ignorable"). Kafka's fields that live in no version of our range are not looked at;
 * ours would be words without a meaning, and are a difference.
 */
import type { Api, Field, Fields, FieldType, VersionRange } from "../../src/wire/schema.ts"
import type { JsonField, JsonMessage } from "./kafkaMessages.ts"

/** One field in one version; `inner` for structs and lists of structs. */
interface Place {
  readonly name: string
  readonly state: string
  readonly inner: ReadonlyArray<Place> | null
}

interface Range {
  readonly min: number
  readonly max: number
}
const has = (range: Range | null, version: number): boolean =>
  range !== null && range.min <= version && version <= range.max
const overlaps = (a: Range, b: Range): boolean => a.min <= b.max && b.min <= a.max
const rangeOf = (text: string | undefined): Range | null => {
  if (text === undefined || text === "none") return null
  if (text.endsWith("+")) return { min: Number(text.slice(0, -1)), max: Infinity }
  const [min, max] = text.split("-").map(Number) as [number, number?]
  return { min, max: max ?? min }
}

/** What both sides are brought to. */
interface Common {
  readonly name: string
  readonly type: string
  readonly versions: Range
  readonly nullable: Range | null
  readonly tag: number | null
  readonly tagged: Range | null
  readonly ignorable: boolean
  readonly fallback: string
  readonly fields: ReadonlyArray<Common> | null
}

const camel = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1)
const isStruct = (type: string): boolean => /^(\[\])?[A-Z]/.test(type)

/** The default in one notation. A field without one has its type's: zero, empty, or the defaults inside a struct. */
const kafkaDefault = (field: JsonField): string => {
  const given = field.default === undefined ? undefined : String(field.default)
  if (given === "null" || (given === undefined && field.type === "records")) return "null"
  if (field.type.startsWith("[]")) return "[]"
  if (isStruct(field.type)) return "inside"
  if (field.type === "string") return JSON.stringify(given ?? "")
  if (field.type === "bytes") return "no bytes"
  if (field.type === "uuid") return "zero id"
  if (field.type === "bool") return given ?? "false"
  return String(Number(given ?? "0"))
}

const fromKafka = (fields: ReadonlyArray<JsonField>): ReadonlyArray<Common> =>
  fields.map((field) => {
    if (field.flexibleVersions !== undefined) throw new Error(`${field.name} has flexible versions of its own`)
    return {
      name: camel(field.name),
      type: field.type.replace(/[A-Z]\w*/, "struct"),
      versions: rangeOf(field.versions) as Range,
      nullable: rangeOf(field.nullableVersions),
      tag: field.tag ?? null,
      tagged: rangeOf(field.taggedVersions),
      ignorable: field.ignorable ?? false,
      fallback: kafkaDefault(field),
      fields: field.fields === undefined ? null : fromKafka(field.fields)
    }
  })

const ourType = (type: FieldType): string =>
  typeof type === "string" ? type : "struct" in type ? "struct" : `[]${ourType(type.array)}`
const ourFields = (type: FieldType): Fields | null =>
  typeof type === "string" ? null : "struct" in type ? type.struct : ourFields(type.array)
const ourDefault = (field: Field<unknown>): string => {
  const value = field.defaultValue
  if (value === undefined) return "inside"
  if (Buffer.isBuffer(value)) return value.length === 0 ? "no bytes" : `bytes ${value.toString("hex")}`
  if (field.type === "uuid") {
    return Buffer.from(String(value), "base64url").equals(Buffer.alloc(16))
      ? "zero id"
      : String(value)
  }
  return JSON.stringify(value)
}
const fromOurs = (fields: Fields): ReadonlyArray<Common> =>
  (Object.entries(fields) as Array<[string, Field<unknown>]>).map(([name, field]) => {
    const inner = ourFields(field.type)
    return {
      name,
      type: ourType(field.type),
      versions: field.versions,
      nullable: field.nullable,
      tag: field.tag,
      tagged: field.tagged,
      ignorable: field.ignorable,
      fallback: ourDefault(field),
      fields: inner === null ? null : fromOurs(inner)
    }
  })

/** One version unfolded: untagged fields in order, then tagged by tag, then those the version lacks by name. */
const unfold = (fields: ReadonlyArray<Common>, version: number, range: Range): ReadonlyArray<Place> => {
  const here = fields.filter((f) => has(f.versions, version))
  const isTagged = (f: Common) => has(f.tagged, version)
  const place = (f: Common): Place => ({
    name: f.name,
    state: `${f.type}${has(f.nullable, version) ? " or null" : ""}${
      isTagged(f) ? `, tag ${f.tag}` : ""
    }, default ${f.fallback}`,
    inner: f.fields === null ? null : unfold(f.fields, version, range)
  })
  const gone = fields.filter((f) => !has(f.versions, version) && overlaps(f.versions, range))
  return [
    ...here.filter((f) => !isTagged(f)).map(place),
    ...here.filter(isTagged).sort((a, b) => (a.tag ?? -1) - (b.tag ?? -1)).map(place),
    ...gone.sort((a, b) => a.name.localeCompare(b.name)).map((f) => ({
      name: f.name,
      state: `not in this version, ${f.ignorable ? "ignorable" : "refused when set"}, default ${f.fallback}`,
      inner: null
    }))
  ]
}

const compare = (ours: ReadonlyArray<Place>, kafkas: ReadonlyArray<Place>, path: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let i = 0; i < Math.max(ours.length, kafkas.length); i++) {
    const a = ours[i]
    const b = kafkas[i]
    if (a === undefined || b === undefined || a.name !== b.name) {
      found.push(`${path}: field ${i + 1} is ${a?.name ?? "missing"}, Kafka's is ${b?.name ?? "none"}`)
      return found
    }
    if (a.state !== b.state) found.push(`${path}.${a.name} is ${a.state}; Kafka's is ${b.state}`)
    if (a.inner !== null && b.inner !== null) found.push(...compare(a.inner, b.inner, `${path}.${a.name}`))
  }
  return found
}

const dead = (fields: ReadonlyArray<Common>, range: Range, path: string): ReadonlyArray<string> =>
  fields.flatMap((f) =>
    overlaps(f.versions, range)
      ? dead(
        f.fields ?? [],
        { min: Math.max(f.versions.min, range.min), max: Math.min(f.versions.max, range.max) },
        `${path}.${f.name}`
      )
      : [`${path}.${f.name} lives in no version from ${range.min} to ${range.max}`]
  )

const messageDifferences = (
  name: string,
  ours: Fields,
  kafkas: JsonMessage,
  range: VersionRange
): ReadonlyArray<string> => {
  const [a, b] = [fromOurs(ours), fromKafka(kafkas.fields)]
  const found: Array<string> = [...dead(a, range, name)]
  for (let version = range.min; version <= range.max; version++) {
    found.push(...compare(unfold(a, version, range), unfold(b, version, range), `${name} v${version}`))
  }
  return found
}

/** What of the API's head is not Kafka's: key, flexible versions, a version that it does not have or calls unstable. */
const headDifferences = (api: Api<unknown, unknown>, request: JsonMessage): ReadonlyArray<string> => {
  const found: Array<string> = []
  const flexible = rangeOf(request.flexibleVersions)?.min ?? Infinity
  const valid = rangeOf(request.validVersions) as Range
  const highest = request.latestVersionUnstable === true ? valid.max - 1 : valid.max
  if (api.key !== request.apiKey) found.push(`${api.name} has key ${api.key}; Kafka's is ${request.apiKey}`)
  if (api.flexibleFrom !== flexible) {
    found.push(`${api.name} is flexible from ${api.flexibleFrom}; Kafka's from ${flexible}`)
  }
  if (api.versions.min > api.versions.max || api.versions.min < valid.min || api.versions.max > highest) {
    found.push(
      `${api.name} has versions ${api.versions.min} to ${api.versions.max}; Kafka's are ${valid.min} to ${highest}`
    )
  }
  return found
}

/** Every difference between an API of ours and Kafka's definition, in words. */
export const differences = (
  api: Api<unknown, unknown>,
  kafka: ReadonlyMap<string, JsonMessage>
): ReadonlyArray<string> => {
  const request = kafka.get(`${api.name}Request`)
  const response = kafka.get(`${api.name}Response`)
  if (request === undefined || response === undefined) return [`Kafka has no API ${api.name}`]
  const head = headDifferences(api, request)
  // Without a bounded range that is Kafka's there is no version to look at.
  if (head.length > 0) return head
  return [
    ...messageDifferences(`${api.name}Request`, api.request.fields as Fields, request, api.versions),
    ...messageDifferences(`${api.name}Response`, api.response.fields as Fields, response, api.versions)
  ]
}
