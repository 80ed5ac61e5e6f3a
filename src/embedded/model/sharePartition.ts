/**
 * One share partition: the state of every record in flight, from the start offset to the last one acquired.
 *
 * Rules (KIP-932, Kafka's SharePartition):
 * 1. The start offset is the first record that is neither acknowledged nor archived.
 * 2. A record is delivered to one member at a time, under a lock; a release or the end of the lock makes it available
 *    again, or archives it when it was delivered as often as the group allows.
 * 3. What is acquired is not durable: a leader that moves knows the delivery counts last written, and no locks.
 *    The start that others are told is the one last written too, before what was written moved it on.
 * 4. KIP-1289: a record that waits for a transaction (pending) goes to nobody and its lock does not end; the marker
 *    decides. That state is durable.
 */
import { code } from "./codes.ts"

export type RecordState = "available" | "acquired" | "acknowledged" | "archived" | "pending"

interface Cell {
  state: RecordState
  member: string
  deliveries: number
  /** Of the last write to the group's state. */
  durableDeliveries: number
  lockUntilMs: number
  /** Last offset of the batch it was acquired with: whole ones are acquired again together. */
  readonly batchEnd: number
  /** Of the transaction it waits for, and what a commit makes of it. */
  producerId: number
  onCommit: "acknowledged" | "archived"
}

export interface SharePartition {
  start: number
  /** As the group's coordinator knows it; -1: nothing was written yet. */
  durableStart: number
  /** Index 0 is the record at `start`. */
  cells: Array<Cell>
}

export interface AcquiredRange {
  readonly firstOffset: number
  readonly lastOffset: number
  readonly deliveryCount: number
}

/** Bits of Kafka's AcknowledgeType. */
export const ack = { gap: 0, accept: 1, release: 2, reject: 3, renew: 4 } as const

export interface AckBatch {
  readonly firstOffset: number
  readonly lastOffset: number
  /** One for the whole range, or one an offset. */
  readonly acknowledgeTypes: ReadonlyArray<number>
}

export const newSharePartition = (start: number, durableStart = -1): SharePartition => ({
  start,
  durableStart,
  cells: []
})

export const endOf = (shared: SharePartition): number => shared.start + shared.cells.length

const isDone = (cell: Cell): boolean => cell.state === "acknowledged" || cell.state === "archived"

/** Records between the durable start and the end that are decided. */
export const decidedSinceDurable = (shared: SharePartition): number =>
  decidedCount(shared) + (shared.durableStart < 0 ? 0 : shared.start - shared.durableStart)

/** Records between the start and the end that are decided. */
const decidedCount = (shared: SharePartition): number => shared.cells.filter(isDone).length

export const inFlight = (shared: SharePartition): number => shared.cells.length - decidedCount(shared)

const advance = (shared: SharePartition): void => {
  let decided = 0
  while (decided < shared.cells.length && isDone(shared.cells[decided] as Cell)) decided++
  if (decided === 0) return
  shared.cells.splice(0, decided)
  shared.start += decided
}

/** Records below the log's start are gone. */
export const followLogStart = (shared: SharePartition, logStart: number): void => {
  if (logStart <= shared.start) return
  shared.cells.splice(0, logStart - shared.start)
  shared.start = logStart
  advance(shared)
}

const release = (cell: Cell, limit: number): void => {
  cell.state = cell.deliveries >= limit ? "archived" : "available"
  cell.member = ""
  cell.durableDeliveries = cell.deliveries
}

/** The first record that may be delivered, or the end. */
export const firstAvailable = (shared: SharePartition): number => {
  const index = shared.cells.findIndex((cell) => cell.state === "available")
  return index < 0 ? endOf(shared) : shared.start + index
}

/** What a fetch has read: the batches that may be delivered, in order. */
export interface Deliverable {
  readonly base: number
  readonly last: number
  /** Of an aborted transaction, where the group reads committed: archived instead of delivered. */
  readonly aborted: boolean
}

export interface AcquireOptions {
  readonly member: string
  readonly maxRecords: number
  /** Ranges in the answer have at least this many records, batches kept whole. */
  readonly batchSize: number
  /** KIP-1206: not one record more than `maxRecords`. Otherwise whole batches, even if they go beyond it. */
  readonly strict: boolean
  readonly maxInFlight: number
  readonly lockUntilMs: number
}

class Ranges {
  readonly all: Array<{ firstOffset: number; lastOffset: number; deliveryCount: number }> = []
  #open = false
  add(offset: number, deliveryCount: number): void {
    const last = this.all.at(-1)
    if (this.#open && last !== undefined && last.lastOffset === offset - 1 && last.deliveryCount === deliveryCount) {
      last.lastOffset = offset
    } else this.all.push({ firstOffset: offset, lastOffset: offset, deliveryCount })
    this.#open = true
  }
  cut(): void {
    this.#open = false
  }
}

const take = (cell: Cell, options: AcquireOptions): void => {
  cell.state = "acquired"
  cell.member = options.member
  cell.deliveries++
  cell.lockUntilMs = options.lockUntilMs
}

/** Released records again; gives how many. */
const acquireAgain = (shared: SharePartition, lastRead: number, options: AcquireOptions, ranges: Ranges): number => {
  let count = 0
  for (let index = 0; index < shared.cells.length; index++) {
    const cell = shared.cells[index] as Cell
    const offset = shared.start + index
    if (offset > lastRead) break
    const inBatch = index > 0 && (shared.cells[index - 1] as Cell).batchEnd === cell.batchEnd
    if (!inBatch) ranges.cut()
    if (count >= options.maxRecords && (options.strict || !inBatch)) break
    if (cell.state !== "available") continue
    take(cell, options)
    ranges.add(offset, cell.deliveries)
    count++
  }
  return count
}

const newCell = (batchEnd: number): Cell => ({
  state: "archived",
  member: "",
  deliveries: 0,
  durableDeliveries: 0,
  lockUntilMs: 0,
  batchEnd,
  producerId: -1,
  onCommit: "acknowledged"
})

/** The last offset to acquire anew: whole batches, or exactly as many records as are allowed. */
const newEnd = (first: number, room: number, strict: boolean, batches: ReadonlyArray<Deliverable>): number => {
  const wanted = first + room - 1
  const last = batches.at(-1)?.last ?? -1
  if (wanted >= last) return last
  return strict ? wanted : batches.find((batch) => batch.last >= wanted)?.last ?? last
}

const acquireNew = (
  shared: SharePartition,
  batches: ReadonlyArray<Deliverable>,
  room: number,
  options: AcquireOptions,
  ranges: Ranges
): number => {
  const from = endOf(shared)
  const fresh = batches.filter((batch) => batch.last >= from)
  const [firstBatch] = fresh
  if (firstBatch === undefined || room <= 0) return 0
  const first = Math.max(from, firstBatch.base)
  const end = newEnd(first, room, options.strict, fresh)
  for (let offset = from; offset < first; offset++) shared.cells.push(newCell(offset))
  ranges.cut()
  let count = 0
  let groupFirst = first
  let next = first
  for (const batch of fresh) {
    const last = Math.min(batch.last, end)
    for (; next <= last; next++) {
      const cell = newCell(last)
      shared.cells.push(cell)
      if (batch.aborted && next >= batch.base) continue
      take(cell, options)
      ranges.add(next, cell.deliveries)
      count++
    }
    if (next > end) break
    if (next - groupFirst >= options.batchSize) {
      ranges.cut()
      groupFirst = next
    }
  }
  return count
}

/** Acquires what the fetch has read (`batches`), as far as limits allow. */
export const acquire = (
  shared: SharePartition,
  batches: ReadonlyArray<Deliverable>,
  options: AcquireOptions
): ReadonlyArray<AcquiredRange> => {
  const ranges = new Ranges()
  const count = acquireAgain(shared, batches.at(-1)?.last ?? -1, options, ranges)
  const room = Math.min(options.maxRecords - count, options.maxInFlight - inFlight(shared))
  acquireNew(shared, batches, room, options, ranges)
  advance(shared)
  return ranges.all
}

const typeAt = (batch: AckBatch, offset: number): number =>
  (batch.acknowledgeTypes.length === 1
    ? batch.acknowledgeTypes[0]
    : batch.acknowledgeTypes[offset - batch.firstOffset]) as number

/** Whether a member holds all of what a batch names, above the start. */
const heldError = (shared: SharePartition, member: string, batch: AckBatch): number => {
  if (batch.lastOffset < shared.start) return code.NONE
  const end = endOf(shared)
  if (batch.firstOffset >= end) return code.INVALID_RECORD_STATE
  if (batch.lastOffset >= end) return code.INVALID_REQUEST
  for (let offset = Math.max(batch.firstOffset, shared.start); offset <= batch.lastOffset; offset++) {
    const cell = shared.cells[offset - shared.start] as Cell
    if (cell.state !== "acquired" || cell.member !== member) return code.INVALID_RECORD_STATE
  }
  return code.NONE
}

const forEachHeld = (
  shared: SharePartition,
  batches: ReadonlyArray<AckBatch>,
  apply: (cell: Cell, type: number) => void
): void => {
  for (const batch of batches) {
    for (let offset = Math.max(batch.firstOffset, shared.start); offset <= batch.lastOffset; offset++) {
      apply(shared.cells[offset - shared.start] as Cell, typeAt(batch, offset))
    }
  }
}

/** All of it or nothing; gives a code. */
export const acknowledge = (
  shared: SharePartition,
  member: string,
  batches: ReadonlyArray<AckBatch>,
  deliveryLimit: number,
  renewedUntilMs: number
): number => {
  let before = -1
  for (const batch of batches) {
    const error = batch.firstOffset <= before ? code.INVALID_RECORD_STATE : heldError(shared, member, batch)
    if (error !== code.NONE) return error
    before = batch.lastOffset
  }
  const writes = batches.some((batch) =>
    batch.acknowledgeTypes.some((type) => type !== ack.renew) && batch.lastOffset >= shared.start
  )
  if (writes) shared.durableStart = shared.start
  forEachHeld(shared, batches, (cell, type) => {
    if (type === ack.release) release(cell, deliveryLimit)
    else if (type === ack.renew) cell.lockUntilMs = renewedUntilMs
    else {
      cell.state = type === ack.accept ? "acknowledged" : "archived"
      cell.member = ""
    }
  })
  advance(shared)
  return code.NONE
}

/** KIP-1289: what a member holds waits for the end of a transaction. All of it or nothing; gives a code. */
export const stagePending = (
  shared: SharePartition,
  member: string,
  batches: ReadonlyArray<AckBatch>,
  producerId: number
): number => {
  let before = -1
  for (const batch of batches) {
    const known = batch.firstOffset >= shared.start && batch.firstOffset > before
    if (!known || heldError(shared, member, batch) !== code.NONE) return code.INVALID_RECORD_STATE
    before = batch.lastOffset
  }
  shared.durableStart = shared.start
  forEachHeld(shared, batches, (cell, type) => {
    cell.state = "pending"
    cell.producerId = producerId
    cell.onCommit = type === ack.accept ? "acknowledged" : "archived"
    cell.durableDeliveries = cell.deliveries
  })
  return code.NONE
}

/** KIP-1289: the marker. An abort makes the records available again, the delivery count kept. */
export const settlePending = (shared: SharePartition, producerId: number, committed: boolean): void => {
  shared.durableStart = shared.start
  for (const cell of shared.cells) {
    if (cell.state !== "pending" || cell.producerId !== producerId) continue
    cell.state = committed ? cell.onCommit : "available"
    cell.member = ""
    cell.producerId = -1
  }
  advance(shared)
}

/** Ends the locks that are over; gives whether there were any. */
export const expireLocks = (shared: SharePartition, nowMs: number, deliveryLimit: number): boolean => {
  let any = false
  for (const cell of shared.cells) {
    if (cell.state !== "acquired" || cell.lockUntilMs > nowMs) continue
    if (!any) shared.durableStart = shared.start
    release(cell, deliveryLimit)
    any = true
  }
  advance(shared)
  return any
}

/** A member's session has ended. */
export const releaseAll = (shared: SharePartition, member: string, deliveryLimit: number): void => {
  const held = shared.cells.filter((cell) => cell.state === "acquired" && cell.member === member)
  if (held.length > 0) shared.durableStart = shared.start
  for (const cell of held) release(cell, deliveryLimit)
  advance(shared)
}

/** Another broker leads the partition: it knows what was written down. */
export const moveSharePartition = (shared: SharePartition): void => {
  for (const cell of shared.cells) {
    if (cell.state === "acquired") {
      cell.state = "available"
      cell.member = ""
    }
    if (cell.state === "available") cell.deliveries = cell.durableDeliveries
  }
}

/** For tests and invariants: what became of each record in flight. */
export const recordStates = (
  shared: SharePartition
): ReadonlyArray<
  { readonly offset: number; readonly state: RecordState; readonly member: string; readonly deliveries: number }
> =>
  shared.cells.map((cell, index) => ({
    offset: shared.start + index,
    state: cell.state,
    member: cell.member,
    deliveries: cell.deliveries
  }))
