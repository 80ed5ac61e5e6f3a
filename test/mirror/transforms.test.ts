import { Effect, Exit } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it, vi } from "vitest"
import type { TransformSpec } from "../../src/config/types.ts"
import { buildChain } from "../../src/mirror/transforms/build.ts"
import type { MirrorRecord, TransformOutcome } from "../../src/mirror/transforms/transform.ts"

const record = (changes: Partial<MirrorRecord> = {}): MirrorRecord => ({
  topic: "east.orders",
  partition: 0,
  offset: 7,
  timestamp: 1_700_000_000_000n,
  key: Buffer.from("k"),
  value: Buffer.from("v"),
  headers: [{ key: Buffer.from("a"), value: Buffer.from("1") }, { key: Buffer.from("b"), value: null }, {
    key: Buffer.from("a"),
    value: Buffer.from("2")
  }],
  ...changes
})
const spec = (
  type: string,
  params: Readonly<Record<string, string>>,
  more: Partial<TransformSpec> = {}
): TransformSpec => ({
  name: "t",
  type,
  params: new Map(Object.entries(params)),
  predicate: null,
  negate: false,
  ...more
})
const predicate = (type: string, params: Readonly<Record<string, string>> = {}) => ({
  name: "p",
  type,
  params: new Map(Object.entries(params))
})

const run = async (specs: ReadonlyArray<TransformSpec>, given = record()): Promise<TransformOutcome> => {
  const chain = await Effect.runPromise(buildChain(specs))
  return await (chain as NonNullable<typeof chain>).apply(given)
}
const kept = async (specs: ReadonlyArray<TransformSpec>, given = record()): Promise<MirrorRecord> => {
  const outcome = await run(specs, given)
  if (outcome.kind !== "keep") throw new Error(`the record was not kept: ${outcome.kind}`)
  return outcome.record
}
const headers = (r: MirrorRecord) => r.headers.map((h) => [h.key.toString(), h.value?.toString() ?? null])
const refused = async (specs: ReadonlyArray<TransformSpec>): Promise<string> => {
  const exit = await Effect.runPromiseExit(buildChain(specs))
  return Exit.isFailure(exit)
    ? exit.cause.reasons.map((reason) => "error" in reason && reason.error instanceof Error ? reason.error.message : "")
      .join()
    : "built"
}

describe("the transforms that come with it", () => {
  it("no transforms: no chain, so that batches pass through undecoded", async () => {
    assert.isNull(await Effect.runPromise(buildChain([])))
  })
  it("InsertHeader adds one, and leaves a header of that name", async () => {
    assert.deepStrictEqual(headers(await kept([spec("InsertHeader", { header: "a", "value.literal": "x" })])), [
      ["a", "1"],
      ["b", null],
      ["a", "2"],
      ["a", "x"]
    ])
  })
  it("DropHeaders drops every header of the names", async () => {
    assert.deepStrictEqual(headers(await kept([spec("DropHeaders", { headers: "a, c" })])), [["b", null]])
  })
  it("RenameHeader renames in place: order, duplicates and null stay", async () => {
    assert.deepStrictEqual(headers(await kept([spec("RenameHeader", { renames: "a:z,b:y" })])), [["z", "1"], [
      "y",
      null
    ], ["z", "2"]])
  })
  it("RegexRouter renames when the whole name matches, with Java's groups", async () => {
    assert.strictEqual(
      (await kept([spec("RegexRouter", { regex: "(.*)\\.orders", replacement: "$1-sales" })])).topic,
      "east-sales"
    )
    assert.strictEqual(
      (await kept([spec("RegexRouter", { regex: "(?<origin>.*)\\.orders", replacement: "x-${origin}" })])).topic,
      "x-east"
    )
    assert.strictEqual((await kept([spec("RegexRouter", { regex: "orders", replacement: "x" })])).topic, "east.orders")
  })
  it("Filter drops what its predicate holds for; negated, the others", async () => {
    const tombstone = { predicate: predicate("RecordIsTombstone") }
    assert.strictEqual((await run([spec("Filter", {}, tombstone)], record({ value: null }))).kind, "drop")
    assert.strictEqual((await run([spec("Filter", {}, tombstone)], record({ value: Buffer.alloc(0) }))).kind, "keep")
    assert.strictEqual(
      (await run([spec("Filter", {}, { predicate: predicate("HasHeaderKey", { name: "b" }), negate: true })])).kind,
      "keep"
    )
    assert.strictEqual(
      (await run([spec("Filter", {}, { predicate: predicate("TopicNameMatches", { pattern: "east\\..*" }) })])).kind,
      "drop"
    )
    assert.strictEqual(
      (await run([spec("Filter", {}, { predicate: predicate("TopicNameMatches", { pattern: "orders" }) })])).kind,
      "keep"
    )
  })
  it("takes Connect's class names", async () => {
    assert.strictEqual(
      (await kept([spec("org.apache.kafka.connect.transforms.RegexRouter", { regex: ".*", replacement: "x" })])).topic,
      "x"
    )
  })
  it("a later transform sees what the one before made", async () => {
    const specs = [
      spec("RegexRouter", { regex: ".*", replacement: "x" }),
      spec("Filter", {}, { predicate: predicate("TopicNameMatches", { pattern: "x" }) })
    ]
    assert.strictEqual((await run(specs)).kind, "drop")
  })
  it("wrong parameters say which, what and what is allowed", async () => {
    assert.match(await refused([spec("InsertHeader", { header: "a" })]), /transforms\.t\.value\.literal: is missing/)
    assert.match(
      await refused([spec("RegexRouter", { regex: "(", replacement: "x" })]),
      /transforms\.t\.regex: is "\("; allowed: a regular expression/
    )
    assert.match(await refused([spec("Frobnicate", {})]), /transforms\.t\.type: is "Frobnicate"; allowed: InsertHeader/)
    assert.match(
      await refused([spec("Filter", {}, { predicate: predicate("Nope") })]),
      /predicates\.p\.type: is "Nope"/
    )
  })
})

describe("a transform of the user's own", () => {
  let folder = ""
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "transform-"))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  let count = 0
  const module = (text: string): TransformSpec => {
    const path = join(folder, `t${count++}.mjs`)
    writeFileSync(path, text)
    return spec("module", { path })
  }
  it("changes what it returns and keeps what it leaves out, headers that are not UTF-8 and 64-bit timestamps too", async () => {
    const odd = record({ timestamp: 9_007_199_254_740_993n, headers: [{ key: Buffer.from([0xff]), value: null }] })
    const made = await kept([
      module(`export const transform = (r) => ({ ...r, value: r.value.toString() + "!", topic: "x" })`)
    ], odd)
    assert.deepStrictEqual({ ...made, value: made.value?.toString() }, { ...odd, value: "v!", topic: "x" })
  })
  it("may work in place, and may be asynchronous", async () => {
    const made = await kept([
      module(
        `export const transform = async (r) => { r.headers.push({ key: "new", value: Buffer.from("1") }); r.key = null; return r }`
      )
    ])
    assert.isNull(made.key)
    assert.deepStrictEqual(headers(made).at(-1), ["new", "1"])
  })
  it("null drops the record", async () => {
    assert.strictEqual((await run([module(`export const transform = () => null`)])).kind, "drop")
  })
  it("what it never settles is tried again after a minute: a lane does not wait for ever", async () => {
    const chain = await Effect.runPromise(buildChain([module("export const transform = () => new Promise(() => {})")]))
    vi.useFakeTimers()
    try {
      const waiting = (chain as NonNullable<typeof chain>).apply(record())
      await vi.advanceTimersByTimeAsync(60_000)
      const late = await waiting
      assert.isTrue(late.kind === "failed" && late.retriable && /no answer within 60 s/.test(late.error.message))
    } finally {
      vi.useRealTimers()
    }
  })
  it("what it throws is a failure, retriable when the error says so; nothing is thrown past it", async () => {
    const fatal = await run([module(`export const transform = () => { throw new TypeError("bad record") }`)])
    assert.isTrue(
      fatal.kind === "failed" && !fatal.retriable && fatal.error.message === "bad record" && fatal.transform === "t"
    )
    const again = await run([
      module(`export const transform = async () => { throw Object.assign(new Error("later"), { retriable: true }) }`)
    ])
    assert.isTrue(again.kind === "failed" && again.retriable)
    const strange = await run([module(`export const transform = () => 7`)])
    assert.isTrue(
      strange.kind === "failed" && /returned a number; allowed are a record or null/.test(strange.error.message)
    )
    const nothing = await run([module(`export const transform = () => {}`)])
    assert.isTrue(nothing.kind === "failed" && /returned nothing/.test(nothing.error.message))
  })
  it("a timestamp that no record can have is its failure, not the batch's", async () => {
    for (const value of ["NaN", "1e30", "-Infinity", "undefined", `"now"`, "5n"]) {
      const made = await run([module(`export const transform = (r) => ({ ...r, timestamp: ${value} })`)])
      assert.isTrue(
        made.kind === "failed" && /as the timestamp; allowed are milliseconds/.test(made.error.message),
        value
      )
    }
  })
  it("what a module is given is its own: it may change it and keep it, whatever becomes of what was read", async () => {
    const chain = await Effect.runPromise(buildChain([
      module(
        `let last = null
         export const transform = (r) => {
           const before = last ?? r.value
           last = r.value
           const value = Buffer.from(before)
           r.value.fill(33, 0, 1)
           return { ...r, value }
         }`
      )
    ]))
    const value = Buffer.from("first")
    const first = record({ value })
    await chain?.apply(first)
    assert.strictEqual(value.toString(), "first")
    value.fill(0)
    const second = await chain?.apply(record({ value: Buffer.from("second") }))
    assert.strictEqual(second?.kind === "keep" ? second.record.value?.toString() : null, "!irst")
  })

  it("a module that cannot be used is refused at start, in words", async () => {
    assert.match(await refused([module(`export const other = 1`)]), /exports no function named transform/)
    assert.match(await refused([spec("module", { path: join(folder, "missing.mjs") })]), /cannot be loaded/)
  })
})
