/**
 * What the target or a transform will not take: taken apart until the very record is known, then to the dead-letter
 * topic, skipped, given back, held or a reason to stop, as configured.
 */
import { Effect } from "effect"
import type { BindingStopped } from "../txn/binding.ts"
import { type ProducerError, RecordRefused } from "../txn/produceErrors.ts"
import { ProtocolError } from "../wire/bytes.ts"
import { intersect, type OffsetRange, rangeSet, size, subtract } from "../wire/ranges.ts"
import type { Copied, CopyFailure, CopyUnit, Output } from "./copyUnit.ts"
import type { Delivery } from "./delivery.ts"
import { FlowStopped } from "./errors.ts"
import { BEHIND, hold, type LaneContext, type Letter, unitSettlements } from "./laneContext.ts"
import { deliveryAt, deliveryFrom, halve, type PendingUnit, singleRecord } from "./pending.ts"
import { settle, whyNot, type Writing } from "./writing.ts"

/** Null: the output's topic is there, made again where somebody has deleted it; else why not. */
const ensured = <E>(
  lane: LaneContext<E>,
  sourceTopic: string,
  { partition, topic }: Output
): Effect.Effect<string | null> =>
  Effect.map(
    Effect.catch(lane.parts.ensureOutput(topic, sourceTopic, partition), ({ message }) => Effect.succeed(message)),
    (problem) => problem === null ? null : `the target has no topic ${topic}: ${problem}`
  )

/** Writes one letter; null when it is written, else why not. */
const writeLetter = <E>(lane: LaneContext<E>, writing: Writing, letter: Letter) =>
  Effect.gen(function*() {
    const { deadLetter } = lane.parts
    if (deadLetter === null) return "there is no dead-letter topic"
    let why = ""
    // Again where the topic turns out to be gone: the record has no other way.
    for (let tries = 0; tries < 2; tries++) {
      const missing = yield* ensured(lane, letter.sourceTopic, deadLetter(letter))
      if (missing !== null) return missing
      const output = deadLetter(letter)
      const outcome = (yield* writing.write([output]))[0]
      if (outcome?.kind === "written") return null
      why = `the dead-letter topic ${output.topic} does not take it: ${
        outcome === undefined ? BEHIND : whyNot(outcome)
      }`
      if (outcome?.kind !== "refused" || outcome.scope !== "partition") break
    }
    return why
  })

/** A single record the target refuses. True when it went to the dead-letter topic instead. */
const refusedRecord = <E>(lane: LaneContext<E>, writing: Writing, item: PendingUnit, output: Output, error: Error) =>
  Effect.gen(function*() {
    const record = singleRecord(output)
    item.reason = `the target refuses the record at offset ${record.offset}: ${error.message}`
    if (lane.parts.onRecordRefused === "block") return false
    const sourceTopic = item.delivery.topic
    const problem = yield* writeLetter(lane, writing, {
      record,
      sourceTopic,
      stage: "TASK_PUT",
      executor: error.name,
      error
    })
    if (problem !== null) {
      item.reason = `${item.reason}; ${problem}`
      return false
    }
    item.rejected.push({ first: record.offset, last: record.offset })
    lane.parts.events.deadLettered(item.delivery, record.offset, error)
    return true
  })

/** Also looks into what is a single record already; in words, where its bytes are not what Kafka's format says. */
const halved = (output: Output): readonly [Output, Output] | string | null => {
  try {
    const halves = halve(output)
    if (halves === null) singleRecord(output)
    return halves
  } catch (error) {
    if (error instanceof ProtocolError) return `it cannot be read either: ${error.what}`
    throw error
  }
}

/** MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE */
const TOO_LARGE: ReadonlySet<number> = new Set([10, 18])

const isTooLarge = (error: Error): boolean => error instanceof RecordRefused && TOO_LARGE.has(error.code)

/**
 * Writes what is left of a unit, one output after the other, halving what is refused, and finishes it. False when it
 * stands: `item.reason` says at which offset and why.
 */
export const writeRest = <E>(
  lane: LaneContext<E>,
  writing: Writing,
  item: PendingUnit
): Effect.Effect<boolean, ProducerError | BindingStopped> =>
  Effect.gen(function*() {
    while (item.remaining.length > 0) {
      const output = item.remaining[0] as Output
      const rest = item.remaining.slice(1)
      const missing = yield* ensured(lane, item.delivery.topic, output)
      if (missing !== null) {
        item.reason = missing
        return false
      }
      const outcome = (yield* writing.write([output]))[0]
      if (outcome?.kind === "written") item.remaining = rest
      else if (outcome?.kind === "refused" && outcome.scope === "records") {
        const halves = halved(output)
        if (typeof halves === "string") {
          item.reason = `${outcome.error.message}; ${halves}`
          return false
        }
        if (halves !== null && isTooLarge(outcome.error)) {
          lane.joinLimits.refused(item.delivery.topic, output.bytes.length)
        }
        if (halves !== null) item.remaining = [...halves, ...rest]
        else if (yield* refusedRecord(lane, writing, item, output, outcome.error)) item.remaining = rest
        else return false
      } else {
        item.reason = outcome === undefined ? BEHIND : whyNot(outcome)
        return false
      }
    }
    writing.finish(item.delivery, unitSettlements(item.unit, item.rejected), item.unit)
    return true
  })

const offsetsOf = ({ offsets, recordCount }: Output): ReadonlyArray<OffsetRange> =>
  typeof offsets === "number"
    ? [{ first: offsets, last: offsets + recordCount - 1 }]
    : offsets.map((offset) => ({ first: offset, last: offset }))

const countOf = (outputs: ReadonlyArray<Output>): { readonly records: number; readonly bytes: number } => ({
  records: outputs.reduce((sum, output) => sum + output.recordCount, 0),
  bytes: outputs.reduce((sum, output) => sum + output.bytes.length, 0)
})

/**
 * A unit that stands, some of its outputs written and some not. Exactly-once: what is written must be noted in the
 * same transaction, or a crash doubles it; so the written part is finished by itself and the unit becomes the rest.
 */
export const narrow = <E>(lane: LaneContext<E>, writing: Writing, item: PendingUnit): void => {
  if (lane.parts.binding.guarantee !== "exactly-once") return
  const left = rangeSet(item.remaining.flatMap(offsetsOf))
  const accept = rangeSet(item.unit.accept)
  const written = subtract(subtract(accept, left), rangeSet(item.rejected))
  if (written.length === 0 && item.rejected.length === 0) return
  const { unit } = item
  const rest = countOf(item.remaining)
  const finished: CopyUnit = {
    ...unit,
    accept: subtract(accept, left),
    records: unit.records - rest.records - size(rangeSet(item.rejected)),
    bytes: Math.max(0, unit.bytes - rest.bytes)
  }
  writing.finish(item.delivery, unitSettlements(finished, item.rejected), finished)
  item.unit = { ...unit, ...rest, accept: intersect(accept, left), gaps: [], outputs: item.remaining, filtered: 0 }
  item.rejected.length = 0
}

export const wantsAnotherTry = (failure: CopyFailure): string =>
  `transform "${failure.transform}" asks for another try at offset ${failure.original.offset}: ${failure.error.message}`

/** A record no transform will take: dead letter, skip or stop, as configured. */
export const fatalFailure = <E>(lane: LaneContext<E>, writing: Writing, delivery: Delivery, failure: CopyFailure) =>
  Effect.gen(function*() {
    const { parts } = lane
    const offset = failure.original.offset
    const where = `${delivery.topic}-${delivery.partition} offset ${offset}`
    const said = `transform "${failure.transform}" failed on ${where}: ${failure.error.message}`
    if (parts.deadLetter !== null) {
      const letter: Letter = {
        record: failure.original,
        sourceTopic: delivery.topic,
        stage: "TRANSFORMATION",
        executor: failure.transform,
        error: failure.error
      }
      const problem = yield* writeLetter(lane, writing, letter)
      if (problem !== null) return yield* new FlowStopped({ what: `${said}; ${problem}` })
      parts.events.deadLettered(delivery, offset, failure.error)
    } else if (parts.errorsTolerance === "all") parts.events.skipped(delivery, offset, failure.error)
    else return yield* new FlowStopped({ what: `${said} (errors.tolerance is none and there is no dead-letter topic)` })
    writing.finish(delivery, [{ first: offset, last: offset, type: "reject" }], null)
  })

/** A record that a transform wants to see again. Where order is kept, the copy has stopped there (`Copied.stoppedAt`). */
const retriableFailure = <E>(lane: LaneContext<E>, delivery: Delivery, failure: CopyFailure) => {
  const offset = failure.original.offset
  if (lane.ordered) return Effect.void
  // Given back too often the group would archive it: near the limit it is held and tried here instead.
  if (failure.deliveryCount < lane.parts.source.deliveryLimit - 1) {
    return settle(lane, delivery, [{ first: offset, last: offset, type: "release" }])
  }
  return hold(lane, { kind: "copy", delivery: deliveryAt(delivery, offset), reason: wantsAnotherTry(failure) })
}

/** What becomes of the records that transforms did not take. */
export const handleFailures = <E>(lane: LaneContext<E>, writing: Writing, delivery: Delivery, copied: Copied) =>
  Effect.gen(function*() {
    for (const failure of copied.failures) {
      if (failure.retriable) yield* retriableFailure(lane, delivery, failure)
      else yield* fatalFailure(lane, writing, delivery, failure)
    }
    const last = copied.failures[copied.failures.length - 1]
    if (copied.stoppedAt === null || last === undefined) return
    yield* hold(lane, {
      kind: "copy",
      delivery: deliveryFrom(delivery, copied.stoppedAt),
      reason: wantsAnotherTry(last)
    })
  })
