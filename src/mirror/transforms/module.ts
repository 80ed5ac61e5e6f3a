/**
 * A transform of the user's own: a JavaScript (or TypeScript) module given by path, which exports
 * `transform(record)`.
 *
 * The module sees { topic, partition, offset, timestamp, key, value, headers: [{ key, value }] } with Buffers (or
 * null) for key and value, text for header keys and a number for the timestamp; it returns the same shape, or null to
 * drop the record, or a promise of either. It may leave fields out: they stay as they were. It throws to reject
 * the record, and throws an error with `retriable: true` to have it delivered again. A promise that is not settled
 * within a minute counts as such an error: what a lane waits for without end would hold its partitions in silence.
 */
import { Effect, Schema } from "effect"
import { pathToFileURL } from "node:url"
import type { Header, MirrorRecord, Transform } from "./transform.ts"

export class TransformModuleError extends Schema.TaggedError<TransformModuleError>()("TransformModuleError", {
  transform: Schema.String,
  path: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return `transform "${this.transform}": ${this.path} ${this.what}`
  }
}

interface UserHeader {
  readonly key: string
  readonly value: Buffer | null
}
/** What the user's function is given; the hidden `raw` keeps header keys that are not UTF-8. */
interface UserRecord {
  topic: string
  partition: number
  offset: number
  timestamp: number
  key: Buffer | null
  value: Buffer | null
  headers: Array<UserHeader>
}

const raw = Symbol("raw header key")

/**
 * The user's own: it may be kept and changed. What a delivery was read from is used again, for a retry and, once that is
 * settled, for other answers.
 */
const own = (bytes: Buffer | null): Buffer | null => bytes === null ? null : Buffer.from(bytes)

const toUser = (record: MirrorRecord): UserRecord => ({
  topic: record.topic,
  partition: record.partition,
  offset: record.offset,
  timestamp: Number(record.timestamp),
  key: own(record.key),
  value: own(record.value),
  headers: record.headers.map((h) => ({ key: h.key.toString("utf8"), value: own(h.value), [raw]: h.key }))
})

const asBytes = (value: unknown, field: string): Buffer | null => {
  if (value === null) return null
  if (Buffer.isBuffer(value)) return value
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (typeof value === "string") return Buffer.from(value, "utf8")
  throw new TypeError(`returned a ${typeof value} as ${field}; allowed are a Buffer, a string or null`)
}

const asHeader = (header: unknown): Header => {
  if (typeof header !== "object" || header === null || !("key" in header) || typeof header.key !== "string") {
    throw new TypeError("returned a header that is not { key: string, value: Buffer | null }")
  }
  const original = raw in header ? header[raw] : undefined
  const key = Buffer.isBuffer(original) && original.toString("utf8") === header.key
    ? original
    : Buffer.from(header.key, "utf8")
  return { key, value: asBytes("value" in header ? header.value ?? null : null, `the value of header "${header.key}"`) }
}

/** Refused here, where the transform is known: a batch with what does not fit into 64 bits cannot be written. */
const asTimestamp = (value: unknown): bigint => {
  if (typeof value === "number" && Math.abs(value) < 2 ** 63) return BigInt(Math.trunc(value))
  throw new TypeError(`returned ${String(value)} as the timestamp; allowed are milliseconds since 1970`)
}

const fromUser = (result: unknown, record: MirrorRecord, given: UserRecord): MirrorRecord | null => {
  if (result === null) return null
  if (typeof result !== "object") {
    throw new TypeError(
      `returned ${result === undefined ? "nothing" : `a ${typeof result}`}; allowed are a record or null`
    )
  }
  const next = { ...given, ...(result as Partial<UserRecord>) }
  if (typeof next.topic !== "string" || next.topic === "") throw new TypeError("returned a topic that is not a name")
  if (!Array.isArray(next.headers)) throw new TypeError("returned headers that are not a list")
  // A timestamp nobody touched keeps all its 64 bits.
  const timestamp = next.timestamp === given.timestamp && given.timestamp === Number(record.timestamp)
    ? record.timestamp
    : asTimestamp(next.timestamp)
  return {
    topic: next.topic,
    partition: record.partition,
    offset: record.offset,
    timestamp,
    key: asBytes(next.key ?? null, "the key"),
    value: asBytes(next.value ?? null, "the value"),
    headers: next.headers.map(asHeader)
  }
}

const ANSWER_MS = 60_000

/** What the promise gives, or a failure that passes when it gives nothing in time. */
const inTime = (promise: Promise<unknown>): Promise<unknown> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    reject(Object.assign(new Error(`gave no answer within ${ANSWER_MS / 1_000} s`), { retriable: true }))
  }, ANSWER_MS)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Loads the module once. Fails in words when it cannot be loaded or has no `transform`. */
export const loadModuleTransform = Effect.fn("loadModuleTransform")(function*(name: string, path: string) {
  const loaded = yield* Effect.tryPromise({
    try: () => import(pathToFileURL(path).href) as Promise<Record<string, unknown>>,
    catch: (cause) =>
      new TransformModuleError({
        transform: name,
        path,
        what: `cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`
      })
  })
  const given = typeof loaded["transform"] === "function" ? loaded["transform"] : loaded["default"]
  if (typeof given !== "function") {
    return yield* new TransformModuleError({ transform: name, path, what: "exports no function named transform" })
  }
  const user = given as (record: UserRecord) => unknown
  const transform: Transform = {
    name,
    apply: (record) => {
      const view = toUser(record)
      // The user may change the view in place: what was given is kept apart to tell.
      const before = { ...view, headers: view.headers }
      const result = user(view)
      if (result instanceof Promise) return inTime(result).then((settled: unknown) => fromUser(settled, record, before))
      return fromUser(result, record, before)
    }
  }
  return transform
})
