/**
 * Every API in src/wire/messages against Kafka's own definitions, and against bytes: what goes out comes back, what is
 * cut or absurd is refused. goldenBytes.test.ts has bytes written by hand, because a mistake that encoder and decoder
 * share passes here.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { ProtocolError } from "../../src/wire/bytes.ts"
import { defineApi, type Field, type Fields, type FieldType, inRange, type Message } from "../../src/wire/schema.ts"
import { differences } from "../kit/conformance.ts"
import { kafkaMessages } from "../kit/kafkaMessages.ts"
import { expectedMessage, messageValue } from "../kit/messageArbitraries.ts"
import { type AnyApi, loadAllApis, loadApi, messageFiles, versionsOf } from "../kit/messages.ts"

const SEED = 20260101
const kafka = kafkaMessages()
const apis = await loadAllApis()

/** Each message of each API, in each version. */
const everyMessage = (api: AnyApi): ReadonlyArray<{ readonly message: Message<Fields>; readonly version: number }> =>
  [api.request, api.response].flatMap((message) => versionsOf(api).map((version) => ({ message, version })))

const encode = (message: Message<Fields>, version: number, value: unknown): Buffer =>
  Buffer.concat([...message.encode(version, value as never)])

/** What decoding throws, null when it does not; anything but a ProtocolError is a failure of the test. */
const refusal = (message: Message<Fields>, version: number, bytes: Buffer): ProtocolError | null => {
  try {
    message.decode(version, bytes)
    return null
  } catch (cause) {
    if (cause instanceof ProtocolError) return cause
    return assert.fail(`${message.name} v${version} on ${bytes.toString("hex")}: ${String(cause)}`)
  }
}

describe("declarations are Kafka's", () => {
  it("there are declarations to check, and each file has the one API of its name", async () => {
    assert.isAtLeast(messageFiles.length, 46)
    for (const file of messageFiles) {
      const { name } = await loadApi(file)
      assert.strictEqual(name.charAt(0).toLowerCase() + name.slice(1), file)
    }
    assert.strictEqual(new Set(apis.map((api) => api.key)).size, apis.length, "two APIs share a key")
  })

  it.each(apis.map((api) => [api.name, api] as const))("%s: every field of every version", (_name, api) => {
    assert.deepStrictEqual(differences(api, kafka), [])
  })
})

describe("values survive the wire", () => {
  it.each(apis.map((api) => [api.name, api] as const))("%s round trips in every version", (_name, api) => {
    for (const { message, version } of everyMessage(api)) {
      fc.assert(
        fc.property(messageValue(message.fields, version), (value) => {
          const decoded = message.decode(version, encode(message, version, value))
          assert.deepStrictEqual(decoded as unknown, expectedMessage(value, message.fields, version))
        }),
        { seed: SEED, numRuns: 25 }
      )
    }
  })
})

describe("hostile bytes", () => {
  // Hundreds of thousands of errors: their stacks are most of the time, and nobody reads them.
  const stackLines = Error.stackTraceLimit
  beforeAll(() => void (Error.stackTraceLimit = 0))
  afterAll(() => void (Error.stackTraceLimit = stackLines))

  it.each(apis.map((api) => [api.name, api] as const))("%s cut at any byte is a ProtocolError", (_name, api) => {
    for (const { message, version } of everyMessage(api)) {
      for (const value of fc.sample(messageValue(message.fields, version), { seed: SEED, numRuns: 2 })) {
        const whole = encode(message, version, value)
        // Long filler bytes are all alike: the ends of a message and a sample of its middle stand for them.
        for (let length = 0; length < whole.length; length += length < 250 || length > whole.length - 20 ? 1 : 23) {
          const refused = refusal(message, version, whole.subarray(0, length))
          if (refused === null) assert.fail(`${message.name} v${version} cut at ${length} decodes`)
        }
      }
    }
  })

  it.each(apis.map((api) => [api.name, api] as const))("%s with bytes left over is a ProtocolError", (_name, api) => {
    for (const { message, version } of everyMessage(api)) {
      const [value] = fc.sample(messageValue(message.fields, version), { seed: SEED, numRuns: 1 })
      const longer = Buffer.concat([encode(message, version, value), Buffer.of(0)])
      assert.match(String(refusal(message, version, longer)?.what), /1 bytes are left over$/)
    }
  })

  it.each(apis.map((api) => [api.name, api] as const))(
    "%s: random bytes decode, or are a ProtocolError",
    (_name, api) => {
      for (const { message, version } of everyMessage(api)) {
        fc.assert(
          fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => void refusal(message, version, Buffer.from(bytes))),
          { seed: SEED, numRuns: 60 }
        )
      }
    }
  )

  it.each(apis.map((api) => [api.name, api] as const))(
    "%s: absurd lengths anywhere end in a ProtocolError or a value",
    (_name, api) => {
      const absurd = ["7fffffff", "7fff", "ffffffff0f", "ffffffff07", "80000000", "ffffffffff"].map((hex) =>
        Buffer.from(hex, "hex")
      )
      for (const { message, version } of everyMessage(api)) {
        const [value] = fc.sample(messageValue(message.fields, version), { seed: SEED, numRuns: 1 })
        const whole = encode(message, version, value).subarray(0, 1200)
        for (let at = 0; at < whole.length; at += at < 120 ? 1 : 37) {
          for (const lie of absurd) {
            const changed = Buffer.from(whole)
            lie.copy(changed, at)
            refusal(message, version, changed)
          }
        }
      }
    }
  )

  it("a list's element takes a byte at least, so a list is never longer than its message", () => {
    /** The fewest bytes a value of this type takes. */
    const least = (type: FieldType, version: number, flexible: boolean): number => {
      if (typeof type === "string" || "array" in type) return 1
      const fields = Object.values(type.struct) as ReadonlyArray<Field<unknown>>
      const plain = fields.filter((f) => inRange(f.versions, version) && !(flexible && inRange(f.tagged, version)))
      return plain.reduce((sum, f) => sum + least(f.type, version, flexible), flexible ? 1 : 0)
    }
    const check = (fields: Fields, version: number, flexible: boolean, path: string): void => {
      for (const [key, field] of Object.entries(fields) as Array<[string, Field<unknown>]>) {
        if (!inRange(field.versions, version) || typeof field.type === "string") continue
        const type = "array" in field.type ? field.type.array : field.type
        if ("array" in field.type) assert.isAbove(least(type, version, flexible), 0, `${path}.${key} v${version}`)
        if (typeof type === "object" && "struct" in type) check(type.struct, version, flexible, `${path}.${key}`)
      }
    }
    for (const api of apis) {
      for (const { message, version } of everyMessage(api)) {
        check(message.fields, version, version >= api.flexibleFrom, message.name)
      }
    }
  })
})

/** Every declaration that is one field away from this one: the path of the field, what was done to it, the outcome. */
type Mutation = readonly [what: string, fields: Fields]
const changes = (
  field: Field<unknown>,
  range: { readonly min: number; readonly max: number }
): ReadonlyArray<readonly [string, Field<unknown>]> => {
  const min = range.min
  const max = Math.min(range.max, field.versions.max)
  const found: Array<readonly [string, Field<unknown>]> = [
    ["type", { ...field, type: field.type === "int32" ? "int64" : "int32" }],
    ["nullable", { ...field, nullable: inRange(field.nullable, max) ? null : { min: 0, max: Infinity } }],
    ["default", { ...field, defaultValue: field.defaultValue === 7 ? 8 : 7 }],
    ["later", { ...field, versions: { min: Math.max(field.versions.min, min) + 1, max: field.versions.max } }],
    ["earlier end", { ...field, versions: { min: field.versions.min, max: max - 1 } }]
  ]
  if (field.tag !== null) {
    found.push(["tag", { ...field, tag: field.tag + 1 }], ["untagged", { ...field, tag: null, tagged: null }])
  }
  if (field.versions.min > min || field.versions.max < range.max) {
    found.push(["ignorable", { ...field, ignorable: !field.ignorable }])
  }
  return found
}
const mutations = (
  fields: Fields,
  range: { readonly min: number; readonly max: number },
  path: string
): ReadonlyArray<Mutation> => {
  const entries = Object.entries(fields) as Array<[string, Field<unknown>]>
  return entries.flatMap(([key, field], i): ReadonlyArray<Mutation> => {
    const put = (replacement: Field<unknown>): Fields =>
      Object.fromEntries(entries.map(([k, f]) => [k, k === key ? replacement : f]))
    const here = `${path}.${key}`
    const found: Array<Mutation> = changes(field, range).map(([what, changed]) => [`${here}: ${what}`, put(changed)])
    found.push([`${here}: left out`, Object.fromEntries(entries.filter(([k]) => k !== key))])
    found.push([`${here}: another name`, Object.fromEntries(entries.map(([k, f]) => [k === key ? `${k}X` : k, f]))])
    const next = entries[i + 1]
    // Tags are written in their own order, wherever they are declared.
    if (
      next !== undefined && field.tag === null && next[1].tag === null && inRange(field.versions, range.max) &&
      inRange(next[1].versions, range.max)
    ) {
      found.push([
        `${here}: after the next`,
        Object.fromEntries([...entries.slice(0, i), next, [key, field], ...entries.slice(i + 2)])
      ])
    }
    const inner = typeof field.type === "string" ? null : "array" in field.type ? field.type.array : field.type
    if (inner !== null && typeof inner === "object" && "struct" in inner) {
      const live = { min: Math.max(range.min, field.versions.min), max: Math.min(range.max, field.versions.max) }
      const wrap = (struct: Fields): FieldType =>
        typeof field.type === "object" && "array" in field.type ? { array: { struct } } : { struct }
      for (const [what, changed] of mutations(inner.struct, live, here)) {
        found.push([what, put({ ...field, type: wrap(changed) })])
      }
    }
    return found
  })
}

describe("the check itself can fail", () => {
  const redefined = (api: AnyApi, request: Fields, response: Fields): AnyApi => ({
    ...api,
    request: { ...api.request, fields: request },
    response: { ...api.response, fields: response }
  })

  it.each(apis.map((api) => [api.name, api] as const))("%s: one wrong field is seen, whichever it is", (_name, api) => {
    const wrong = [
      ...mutations(api.request.fields, api.versions, "request").map(([what, fields]) =>
        [what, redefined(api, fields, api.response.fields)] as const
      ),
      ...mutations(api.response.fields, api.versions, "response").map(([what, fields]) =>
        [what, redefined(api, api.request.fields, fields)] as const
      )
    ]
    assert.deepStrictEqual(
      wrong.filter(([, changed]) => differences(changed, kafka).length === 0).map(([what]) => what),
      []
    )
  })

  it("says which field of which version differs, and how", () => {
    const fetch = apis.find((api) => api.name === "Fetch") as AnyApi
    const { rackId, ...rest } = fetch.request.fields as Record<string, Field<unknown>>
    assert.deepInclude(
      differences(
        redefined(fetch, { ...rest, rackId: { ...rackId as Field<unknown>, type: "int16" } }, fetch.response.fields),
        kafka
      ),
      "FetchRequest v11.rackId is int16, default \"\"; Kafka's is string, default \"\""
    )
  })

  it("a wrong key, name, flexible version or version range is seen", () => {
    const head = { key: 26, name: "EndTxn", versions: "0-5", flexible: 3, request: {}, response: {} }
    const problem = (change: Partial<typeof head>): string =>
      differences(defineApi({ ...head, ...change }), kafka)[0] ?? "none"
    assert.strictEqual(problem({ key: 27 }), "EndTxn has key 27; Kafka's is 26")
    assert.strictEqual(problem({ name: "EndTransaction" }), "Kafka has no API EndTransaction")
    assert.strictEqual(problem({ flexible: 2 }), "EndTxn is flexible from 2; Kafka's from 3")
    assert.strictEqual(problem({ versions: "0-6" }), "EndTxn has versions 0 to 6; Kafka's are 0 to 5")
    assert.strictEqual(
      problem({ name: "InitProducerId", key: 22, flexible: 2, versions: "0-6" }),
      "InitProducerId has versions 0 to 6; Kafka's are 0 to 5"
    )
  })
})
