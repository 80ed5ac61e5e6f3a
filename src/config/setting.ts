/**
 * One setting of ours: the Effect Schema of its value and what the documentation and the error messages say of it.
 * The reference page, the errors and the tests are made from these, so that a setting cannot exist without them.
 *
 * Values are taken as YAML gives them, and numbers and booleans also as text ("4", "true"), because replaced
 * references and files made for Connect have nothing but text. Words are taken in any case, as Kafka does.
 */
import { Effect, Schema, SchemaGetter } from "effect"
import { STARTING_POINT, STARTING_POINT_ALLOWED } from "./kafkaSettings.ts"
import { parsePattern } from "./pattern.ts"

export interface SettingInfo {
  /** "whole number", "yes or no", "text", "list of patterns" ... */
  readonly type: string
  readonly allowed: string
  /** As shown in the documentation; null: there is none. */
  readonly fallback: string | null
  readonly required: boolean
  /** What it does and what it guarantees, in full sentences. */
  readonly text: string
  /** The words of a setting that takes only certain ones: the nearest is offered. */
  readonly words: ReadonlyArray<string>
}

export interface Setting<S extends Schema.Top> {
  readonly schema: S
  readonly info: SettingInfo
}
export type Settings = Readonly<Record<string, Setting<Schema.Top>>>
export type StructOf<F extends Settings> = Schema.Struct<{ readonly [K in keyof F]: F[K]["schema"] }>

/** The Schema of a map with these settings. */
export const structOf = <F extends Settings>(fields: F): StructOf<F> =>
  Schema.Struct(
    Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, field.schema]))
  ) as unknown as StructOf<F>

/** A schema that first turns what was written into what `to` reads. */
const coerced = <S extends Schema.Top>(to: S, f: (raw: unknown) => unknown) =>
  Schema.Unknown.pipe(Schema.decodeTo(to, {
    decode: SchemaGetter.transform((raw: unknown) => f(raw) as S["Encoded"]),
    encode: SchemaGetter.transform((encoded: S["Encoded"]) => encoded as unknown)
  }))

const field = <S extends Schema.Top>(
  schema: S,
  info: Omit<SettingInfo, "required" | "words"> & { readonly words?: ReadonlyArray<string> }
): Setting<S> => ({
  schema: schema.annotate({ description: info.text }) as unknown as S,
  info: { ...info, required: false, words: info.words ?? [] }
})

/** The same setting with a default, given as it would be written in the file. */
export const withDefault = <S extends Schema.Top>(setting: Setting<S>, value: unknown, shown?: string) => ({
  schema: Schema.withDecodingDefaultKey<S>(Effect.succeed(value as S["Encoded"]))(setting.schema),
  info: { ...setting.info, fallback: shown ?? showDefault(value) }
})
export const optional = <S extends Schema.Top>(setting: Setting<S>, shown: string | null = null) => ({
  schema: Schema.optionalKey(setting.schema),
  info: { ...setting.info, fallback: shown }
})
export const required = <S extends Schema.Top>(setting: Setting<S>): Setting<S> => ({
  ...setting,
  info: { ...setting.info, required: true }
})

const showDefault = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value)

const asNumber = (raw: unknown): unknown => typeof raw === "string" && /^-?\d+$/.test(raw.trim()) ? Number(raw) : raw
const asBoolean = (raw: unknown): unknown => {
  if (typeof raw !== "string") return raw
  const word = raw.trim().toLowerCase()
  return word === "true" ? true : word === "false" ? false : raw
}
const asWord = (raw: unknown): unknown => typeof raw === "string" ? raw.trim().toLowerCase() : raw

export const whole = (min: number, max: number, text: string, unit = "", extra: ReadonlyArray<number> = []) =>
  field(
    coerced(Schema.Int.check(Schema.makeFilter((n: number) => (n >= min && n <= max) || extra.includes(n))), asNumber),
    {
      type: "whole number",
      allowed: `${extra.map((n) => `${n}, or `).join("")}a whole number from ${min} to ${max}${
        unit === "" ? "" : ` (${unit})`
      }`,
      fallback: null,
      text
    }
  )

export const flag = (text: string) =>
  field(coerced(Schema.Boolean, asBoolean), {
    type: "boolean",
    allowed: "true, false",
    fallback: null,
    text,
    words: ["true", "false"]
  })

export const word = <const W extends ReadonlyArray<string>>(words: W, text: string) =>
  field(coerced(Schema.Literals(words), asWord), {
    type: "word",
    allowed: words.join(", "),
    fallback: null,
    text,
    words
  })

export const text = (allowed: string, pattern: RegExp, about: string) =>
  field(Schema.String.check(Schema.makeFilter((s: string) => pattern.test(s))), {
    type: "text",
    allowed,
    fallback: null,
    text: about
  })

/** auto.offset.reset, with its words in lower case and its duration as it is. */
export const startingPoint = (about: string) =>
  field(
    coerced(
      Schema.String.check(Schema.makeFilter((s: string) => STARTING_POINT.test(s))),
      (raw) => typeof raw === "string" ? canonicalStartingPoint(raw) : raw
    ),
    {
      type: "word",
      allowed: STARTING_POINT_ALLOWED,
      fallback: null,
      text: about,
      words: ["earliest", "latest"]
    }
  )

export const canonicalStartingPoint = (written: string): string => {
  const [word = "", duration] = written.trim().split(":")
  return duration === undefined ? word.toLowerCase() : `${word.toLowerCase()}:${duration.toUpperCase()}`
}

const splitOutsideBrackets = (list: string): ReadonlyArray<string> => {
  const parts: Array<string> = [""]
  let depth = 0
  for (const [i, c] of [...list].entries()) {
    const escaped = i > 0 && list[i - 1] === "\\"
    if (!escaped && "([{".includes(c)) depth += 1
    if (!escaped && ")]}".includes(c)) depth -= 1
    if (c === "," && depth === 0) parts.push("")
    else parts[parts.length - 1] += c
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "")
}
/** "a, b" is a list as MirrorMaker 2 writes it; the comma of "x{1,2}" does not split. */
const asList = (raw: unknown): unknown => typeof raw === "string" ? splitOutsideBrackets(raw) : raw

const Pattern = Schema.String.check(Schema.makeFilter((s: string) => {
  const parsed = parsePattern(s)
  return parsed.ok ? undefined : parsed.why
}))

/** Regular expressions, anchored by who uses them. Decoded to the form that `new RegExp` takes. */
export const patterns = (text: string) =>
  field(coerced(Schema.Array(Pattern), asList), {
    type: "list of patterns",
    allowed: "regular expressions, as a list or separated by commas",
    fallback: null,
    text
  })

export const words = <const W extends ReadonlyArray<string>>(allowed: W, text: string) =>
  field(
    coerced(
      Schema.Array(coerced(Schema.Literals(allowed), asWord)).check(
        Schema.makeFilter((list: ReadonlyArray<string>) =>
          list.length === 0 ? "is an empty list" : new Set(list).size === list.length ? undefined : "names one twice"
        )
      ),
      asList
    ),
    { type: "list of words", allowed: `a list of ${allowed.join(", ")}`, fallback: null, text, words: allowed }
  )

/** Names to names. A Record with a checked key would leave out the keys that fail in silence; so the whole is checked. */
export const mapping = (allowed: string, name: RegExp, text: string) => {
  const bad = Schema.makeFilter((map: Readonly<Record<string, string>>) =>
    Object.entries(map)
      .filter(([from, to]) => !name.test(from) || !name.test(to))
      .map(([from, to]) => ({
        path: [from],
        issue: name.test(from)
          ? "is not a name"
          : `${JSON.stringify(to)} is for ${JSON.stringify(from)}, which is not a name`
      }))
  )
  return field(Schema.Record(Schema.String, Schema.String).check(bad), { type: "map", allowed, fallback: null, text })
}

/** Patterns to lists of patterns. */
export const patternLists = (allowed: string, text: string) => {
  const bad = Schema.makeFilter((map: Readonly<Record<string, ReadonlyArray<string>>>) =>
    Object.keys(map).flatMap((key) => {
      const parsed = parsePattern(key)
      return parsed.ok ? [] : [{ path: [key], issue: parsed.why }]
    })
  )
  return field(
    Schema.Record(Schema.String, coerced(Schema.Array(Pattern), asList)).check(bad),
    { type: "map of patterns", allowed, fallback: null, text }
  )
}

export interface Listen {
  readonly host: string
  readonly port: number
}
const LISTEN = /^(?:\[([0-9a-fA-F:.%]+)\]|([^\s:[\]/]+)):(\d{1,5})$/
/** "host:port" or "[v6]:port"; port 0 is any free one. null when it is neither. */
export const parseListen = (address: string): Listen | null => {
  const found = LISTEN.exec(address.trim())
  if (found === null || Number(found[3]) > 65_535) return null
  return { host: (found[1] ?? found[2]) as string, port: Number(found[3]) }
}
export const listen = (text: string) =>
  field(
    coerced(
      Schema.Union([
        Schema.Literal(false),
        Schema.String.check(Schema.makeFilter((s: string) => parseListen(s) !== null))
      ]),
      asBoolean
    ),
    {
      type: "address",
      allowed: "HOST:PORT, or false for no server",
      fallback: null,
      text
    }
  )
