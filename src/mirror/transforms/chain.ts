/**
 * Runs the configured transforms over a record, in their order.
 *
 * Guarantee: never throws and never rejects. What a transform throws becomes a "failed" outcome; it is retriable
 * when the error says so (`error.retriable === true`, or its name is RetriableError or RetriableException, as
 * Connect's users write it).
 */
import type { MirrorRecord, Transform, TransformOutcome } from "./transform.ts"

export interface TransformChain {
  readonly names: ReadonlyArray<string>
  /** A plain value unless a transform of the chain is asynchronous: no promise per record otherwise. */
  readonly apply: (record: MirrorRecord) => TransformOutcome | Promise<TransformOutcome>
}

const isRetriable = (error: Error): boolean =>
  ("retriable" in error && error.retriable === true) || error.name === "RetriableError" ||
  error.name === "RetriableException"

const failed = (transform: string, thrown: unknown): TransformOutcome => {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  return { kind: "failed", transform, retriable: isRetriable(error), error }
}

const DROP: TransformOutcome = { kind: "drop" }

export const makeChain = (transforms: ReadonlyArray<Transform>): TransformChain => {
  const from = (start: number, first: MirrorRecord): TransformOutcome | Promise<TransformOutcome> => {
    let record = first
    for (let i = start; i < transforms.length; i++) {
      const transform = transforms[i] as Transform
      try {
        const result = transform.apply(record)
        if (result instanceof Promise) {
          return result.then(
            (next) => (next === null ? DROP : from(i + 1, next)),
            (thrown) => failed(transform.name, thrown)
          )
        }
        if (result === null) return DROP
        record = result
      } catch (thrown) {
        return failed(transform.name, thrown)
      }
    }
    return { kind: "keep", record }
  }
  return { names: transforms.map((t) => t.name), apply: (record) => from(0, record) }
}
