/**
 * What must hold, read from the clusters' own state after every event.
 *
 * 1. No source record has two committed outputs. A transaction counts as committed from the coordinator's decision on,
 *    whether or not its markers are written.
 * 2. Nothing is acknowledged (in the share group, or below a committed position) whose output is not committed. In a
 *    share group it is looked at twice: when a lane asks for it, and in the group's state.
 * 3. In consumer mode the committed outputs of a source partition are in its order.
 * 4. `finish`: every record has its output, and is acknowledged.
 */
import type { Embedded } from "../../src/embedded/embedded.ts"
import { batchesBetween, lastStableOffset, type Log } from "../../src/embedded/model/partitionLog.ts"
import { sharePartitionKey } from "../../src/embedded/model/shareGroup.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"

/** A claim of onceover's that does not hold. */
export class Violation extends Error {
  override readonly name = "Violation"
}

export interface CheckerOptions {
  readonly source: Embedded
  readonly target: Embedded
  readonly sourceTopic: string
  readonly targetTopic: string
  readonly partitions: number
  readonly group: string
  /** The group may give records up; repair has to find them. */
  readonly givesUp: boolean
  readonly ordered: boolean
  readonly duplicatesAllowed: boolean
}

interface Written {
  readonly id: string
  readonly offset: number
}

/** One target partition as far as it was read. */
class TargetPartition {
  next = 0
  readonly open = new Map<number, Array<Written>>()
  /** Committed and above the last stable offset; for the order. */
  unordered: Array<Written> = []
  readonly newest = new Map<string, number>()
}

const partitionOf = (id: string): string => id.slice(0, id.indexOf(":"))
const numberOf = (id: string): number => Number(id.slice(id.indexOf(":") + 1))

export class Checker {
  readonly #options: CheckerOptions
  readonly #targets: ReadonlyArray<TargetPartition>
  /** Where the output of a record is. */
  readonly #committed = new Map<string, string>()
  /** By source partition: the id at each offset. */
  readonly #sourceIds: ReadonlyArray<Map<number, string>>
  readonly #checkedTo: Array<number>
  readonly #expected = new Set<string>()
  duplicates = 0

  constructor(options: CheckerOptions) {
    this.#options = options
    this.#targets = Array.from({ length: options.partitions }, () => new TargetPartition())
    this.#sourceIds = Array.from({ length: options.partitions }, () => new Map<number, string>())
    this.#checkedTo = Array.from({ length: options.partitions }, () => 0)
  }

  /** A record that was put into the source. */
  expect(partition: number, offset: number, id: string): void {
    this.#sourceIds[partition]?.set(offset, id)
    this.#expected.add(id)
  }
  /** A record that the source does not have any more. */
  forgive(partition: number, offset: number): void {
    const id = this.#sourceIds[partition]?.get(offset)
    if (id === undefined) return
    this.#sourceIds[partition]?.delete(offset)
    this.#expected.delete(id)
  }

  get committed(): number {
    return this.#committed.size
  }
  get expected(): number {
    return this.#expected.size
  }

  /** Looks at all that is new. Throws a Violation. */
  check(): void {
    for (let partition = 0; partition < this.#options.partitions; partition++) this.#readTarget(partition)
    this.#readDecisions()
    if (this.#options.ordered) {
      for (let partition = 0; partition < this.#options.partitions; partition++) this.#checkOrder(partition)
    }
    for (let partition = 0; partition < this.#options.partitions; partition++) this.#readShare(partition)
  }

  #logOf(partition: number): Log {
    return this.#options.target.log(this.#options.targetTopic, partition)
  }

  #readTarget(partition: number): void {
    const log = this.#logOf(partition)
    const target = this.#targets[partition] as TargetPartition
    if (log.endOffset <= target.next) return
    for (const { base, view } of batchesBetween(log, target.next, log.endOffset)) {
      const records = decodeRecords(view)
      if (view.isControl) {
        const commit = records[0]?.key?.readInt16BE(2) === 1
        this.#end(partition, view.producerId, commit)
        continue
      }
      const written = records.map((record, n): Written => ({ id: record.value?.toString() ?? "", offset: base + n }))
      if (!view.isTransactional) this.#commit(partition, written)
      else target.open.set(view.producerId, [...target.open.get(view.producerId) ?? [], ...written])
    }
    target.next = log.endOffset
  }

  /** What the coordinator has decided and no marker says yet. */
  #readDecisions(): void {
    for (const marker of this.#options.target.state.markers) {
      const { participant } = marker
      if (participant.kind !== "partition" || participant.topic !== this.#options.targetTopic || !marker.committed) {
        continue
      }
      this.#end(participant.partition, marker.producerId, true)
    }
  }

  #end(partition: number, producerId: number, commit: boolean): void {
    const { open } = this.#targets[partition] as TargetPartition
    const written = open.get(producerId)
    if (written === undefined) return
    open.delete(producerId)
    if (commit) this.#commit(partition, written)
  }

  #commit(partition: number, written: ReadonlyArray<Written>): void {
    const target = this.#targets[partition] as TargetPartition
    for (const { id, offset } of written) {
      const place = `${this.#options.targetTopic}-${partition}@${offset}`
      const known = this.#committed.get(id)
      if (known !== undefined) {
        this.duplicates++
        if (!this.#options.duplicatesAllowed) {
          throw new Violation(`source record ${id} is committed twice: at ${known} and at ${place}`)
        }
      }
      this.#committed.set(id, place)
    }
    if (this.#options.ordered) target.unordered.push(...written)
  }

  /** What readers of committed records see: in the order of the log, below the last stable offset. */
  #checkOrder(partition: number): void {
    const target = this.#targets[partition] as TargetPartition
    if (target.unordered.length === 0) return
    const stable = lastStableOffset(this.#logOf(partition))
    const visible = target.unordered.filter(({ offset }) => offset < stable).sort((a, b) => a.offset - b.offset)
    if (visible.length === 0) return
    target.unordered = target.unordered.filter(({ offset }) => offset >= stable)
    for (const { id, offset } of visible) {
      const key = partitionOf(id)
      const newest = target.newest.get(key) ?? -1
      if (numberOf(id) < newest && !this.#options.duplicatesAllowed) {
        throw new Violation(
          `out of order: source record ${id} is at ${this.#options.targetTopic}-${partition}@${offset}, behind ${key}:${newest}`
        )
      }
      target.newest.set(key, Math.max(newest, numberOf(id)))
    }
  }

  #readShare(partition: number): void {
    const { group, source, sourceTopic } = this.#options
    const topicId = source.state.topics.get(sourceTopic)?.id ?? ""
    const shared = source.state.shareGroups.get(group)?.partitions.get(sharePartitionKey(topicId, partition))
    if (shared === undefined) return
    // Where the group gives records up, its start says nothing of acknowledgements: `accepting` sees those.
    if (this.#options.givesUp) this.#checkedTo[partition] = shared.start
    else this.#acknowledgedTo(partition, shared.start, "acknowledged in the share group")
    shared.cells.forEach((cell, n) => {
      if (cell.state === "acknowledged") {
        this.#acknowledged(partition, shared.start + n, "acknowledged in the share group")
      }
    })
  }

  /** A lane asks the source to take it as done. */
  accepting(topicId: string, partition: number, offset: number): void {
    if (topicId !== this.#options.source.state.topics.get(this.#options.sourceTopic)?.id) return
    this.check()
    this.#acknowledged(partition, offset, "accepted by a lane")
  }

  /** A position that the group has committed. */
  positionCommitted(partition: number, offset: number): void {
    this.check()
    this.#acknowledgedTo(partition, offset, `below the committed position ${offset}`)
  }

  #acknowledgedTo(partition: number, end: number, how: string): void {
    for (let offset = this.#checkedTo[partition] as number; offset < end; offset++) {
      this.#acknowledged(partition, offset, how)
    }
    this.#checkedTo[partition] = Math.max(this.#checkedTo[partition] as number, end)
  }

  #acknowledged(partition: number, offset: number, how: string): void {
    const id = this.#sourceIds[partition]?.get(offset)
    if (id === undefined || this.#committed.has(id)) return
    throw new Violation(`source record ${id} (offset ${offset}) is ${how}, and has no committed output`)
  }

  /** What is still missing; null: everything is done. */
  missing(): string | null {
    if (this.#committed.size < this.#expected.size) {
      const left = [...this.#expected].filter((id) => !this.#committed.has(id))
      return `${left.length} of ${this.#expected.size} source records have no committed output: ${
        left.slice(0, 10).join(", ")
      }`
    }
    for (let partition = 0; partition < this.#options.partitions; partition++) {
      const last = Math.max(-1, ...(this.#sourceIds[partition] as Map<number, string>).keys())
      if ((this.#checkedTo[partition] as number) <= last) {
        return `partition ${partition}: records from offset ${
          this.#checkedTo[partition]
        } on are mirrored but not acknowledged`
      }
    }
    return null
  }
}
