/**
 * A partition's log as a broker keeps it, for tests: record batches with offsets, transactions with markers, and what
 * a fetch gives of it in read_committed, with the list of aborted transactions. Batches are real bytes.
 */
import { encodeBatch, type Rec } from "../../src/wire/batch/records.ts"
import { at, bit, BatchView } from "../../src/wire/batch/recordBatch.ts"
import type { AbortedTransaction } from "../../src/group/visibleBatches.ts"

const record = (offset: number, value: string): Rec => ({
  offset,
  timestamp: 1_700_000_000_000n,
  key: null,
  value: Buffer.from(value),
  headers: []
})

interface Open {
  readonly producerId: number
  readonly first: number
  last: number
}

export class LogModel {
  readonly batches: Array<BatchView> = []
  logStart = 0
  end = 0
  epoch: number
  readonly #open = new Map<number, Open>()
  readonly #aborted: Array<Open> = []
  /** Values of records that a read_committed consumer must see, by offset; of transactions once they commit. */
  readonly visible = new Map<number, string>()
  readonly #pending = new Map<number, Array<readonly [number, string]>>()

  constructor(epoch = 0) {
    this.epoch = epoch
  }

  /** Appends one batch; with a producer id, as part of its transaction. */
  append(values: ReadonlyArray<string>, producerId = -1): void {
    const records = values.map((value, i) => record(this.end + i, value))
    this.#push(
      encodeBatch(records, {
        codec: "none",
        offsets: "keep",
        partitionLeaderEpoch: this.epoch,
        producerId,
        producerEpoch: producerId < 0 ? -1 : 0,
        transactional: producerId >= 0
      })
    )
    const placed = values.map((value, i) => [this.end + i, value] as const)
    if (producerId < 0) { for (const [offset, value] of placed) this.visible.set(offset, value) }
    else {
      if (!this.#open.has(producerId)) this.#open.set(producerId, { producerId, first: this.end, last: -1 })
      this.#pending.set(producerId, [...this.#pending.get(producerId) ?? [], ...placed])
    }
    this.end += values.length
  }

  /** Ends a producer's transaction with its marker. */
  finish(producerId: number, how: "commit" | "abort"): void {
    const open = this.#open.get(producerId)
    if (open === undefined) return
    const key = Buffer.from([0, 0, 0, how === "abort" ? 0 : 1])
    const marker: Rec = { offset: this.end, timestamp: 1_700_000_000_000n, key, value: Buffer.alloc(6), headers: [] }
    const bytes = encodeBatch([marker], {
      codec: "none",
      offsets: "keep",
      partitionLeaderEpoch: this.epoch,
      producerId,
      producerEpoch: 0,
      transactional: true
    })
    bytes.writeUInt16BE(bytes.readUInt16BE(at.attributes) | bit.control, at.attributes)
    this.#push(bytes)
    open.last = this.end
    this.#open.delete(producerId)
    if (how === "abort") this.#aborted.push(open)
    else for (const [offset, value] of this.#pending.get(producerId) ?? []) this.visible.set(offset, value)
    this.#pending.delete(producerId)
    this.end++
  }

  #push(bytes: Buffer): void {
    this.batches.push(new BatchView(bytes, 0))
  }

  get lastStable(): number {
    return Math.min(this.end, ...[...this.#open.values()].map(({ first }) => first))
  }

  /** Compaction took the batch away; its offsets stay a hole. It never takes what a transaction may still end. */
  compactAway(index: number): void {
    if ((this.batches[index]?.lastOffset ?? this.end) >= this.lastStable) return
    const [gone] = this.batches.splice(index, 1)
    if (gone !== undefined) {
      for (let offset = gone.baseOffset; offset <= gone.lastOffset; offset++) this.visible.delete(offset)
    }
  }

  /** An unclean leader: everything from `offset` on is gone, and a new epoch begins. `offset` is a batch's first. */
  truncate(offset: number): void {
    while ((this.batches.at(-1)?.lastOffset ?? -1) >= offset) this.batches.pop()
    for (const known of this.visible.keys()) if (known >= offset) this.visible.delete(known)
    this.end = offset
    this.epoch++
  }

  /** What OffsetForLeaderEpoch answers: the largest epoch that is not above, and where it ends. */
  epochEnd(epoch: number): { readonly leaderEpoch: number; readonly endOffset: number } {
    if (epoch === this.epoch) return { leaderEpoch: epoch, endOffset: this.end }
    if (epoch > this.epoch) return { leaderEpoch: -1, endOffset: -1 }
    const older = this.batches.filter((batch) => batch.partitionLeaderEpoch <= epoch)
    const last = older.at(-1)
    if (last === undefined) return { leaderEpoch: -1, endOffset: -1 }
    const next = this.batches.find((batch) => batch.partitionLeaderEpoch > epoch)
    return { leaderEpoch: last.partitionLeaderEpoch, endOffset: next?.baseOffset ?? this.end }
  }

  /** Whole batches from the one that holds `offset`, up to `maxBytes`; the first one whole, a later one cut, as brokers do. */
  fetch(
    offset: number,
    maxBytes: number,
    readCommitted: boolean
  ): { readonly records: Buffer; readonly aborted: ReadonlyArray<AbortedTransaction> } {
    const upper = readCommitted ? this.lastStable : this.end
    const found = this.batches.filter((batch) => batch.lastOffset >= offset && batch.baseOffset < upper)
    const first = found[0]
    if (first === undefined) return { records: Buffer.alloc(0), aborted: [] }
    const all = Buffer.concat(found.map((batch) => batch.bytes))
    const records = all.subarray(0, Math.max(first.sizeInBytes, maxBytes))
    const last = found.at(-1) as BatchView
    const aborted = this.#aborted.filter((open) => open.last >= offset && open.first <= last.lastOffset)
      .map(({ first: firstOffset, producerId }) => ({ producerId, firstOffset }))
    return { records, aborted: readCommitted ? aborted : [] }
  }
}
