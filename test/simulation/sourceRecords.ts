/**
 * What the source's producers write: records in bursts over the whole phase of faults. In some runs they write in
 * transactions, of which some are aborted, and compaction leaves holes: offsets without a record that lanes must
 * acknowledge all the same.
 */
import { appendBatch, appendMarker } from "../../src/embedded/model/partitionLog.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { rewriteForProduce } from "../../src/wire/batch/rewrite.ts"
import { Dice } from "./dice.ts"
import { START_MS } from "./loop.ts"
import type { World } from "./simulation.ts"
import { TOPIC } from "./worker.ts"

const LONGEST_TRANSACTION_MS = 400
const FIRST_PRODUCER_ID = 500_000

class SourceProducers {
  readonly #world: World
  readonly #dice: Dice
  readonly #counts: Array<number>
  #producerId = FIRST_PRODUCER_ID

  constructor(world: World) {
    this.#world = world
    this.#dice = new Dice(world.plan.seed, "source transactions")
    this.#counts = Array.from({ length: world.plan.partitions }, () => 0)
  }

  /** The values of the next records of a partition. */
  #next(partition: number, count: number): ReadonlyArray<string> {
    const start = this.#counts[partition] ?? 0
    this.#counts[partition] = start + count
    return Array.from({ length: count }, (_, n) => `${partition}:${start + n}`)
  }

  burst(partition: number, count: number): void {
    const { checker, plan, source } = this.#world
    if (plan.sourceGaps && this.#dice.chance(0.5)) return this.#transaction(partition, count)
    const ids = this.#next(partition, count)
    const first = source.append(TOPIC, partition, ids.map((value) => ({ value })))
    if (plan.sourceGaps && this.#dice.chance(0.3)) source.punchHole(TOPIC, partition, first, first + count - 1)
    else ids.forEach((id, n) => checker.expect(partition, first + n, id))
  }

  #transaction(partition: number, count: number): void {
    const { checker, loop, source } = this.#world
    const committed = this.#dice.chance(0.6)
    const ids = committed ? this.#next(partition, count) : Array.from({ length: count }, () => "aborted")
    const records = ids.map((id, offset) => ({
      offset,
      timestamp: BigInt(loop.nowMs),
      key: null,
      value: Buffer.from(id),
      headers: []
    }))
    const bytes = encodeBatch(records, { codec: "none" })
    const producerId = this.#producerId++
    const [batch] = splitBatches(bytes)
    if (batch !== undefined) {
      rewriteForProduce(batch, { producerId, producerEpoch: 0, baseSequence: 0, transactional: true })
    }
    const log = source.log(TOPIC, partition)
    const now = () => ({
      leaderEpoch: source.state.topics.get(TOPIC)?.partitions[partition]?.leaderEpoch ?? 0,
      nowMs: loop.nowMs,
      logAppendTime: false
    })
    const first = appendBatch(log, bytes, now())
    if (committed) ids.forEach((id, n) => checker.expect(partition, first + n, id))
    loop.after(this.#dice.int(1, LONGEST_TRANSACTION_MS), () => {
      appendMarker(log, { producerId, epoch: 1, committed, transactionVersion: 2 }, now())
      source.wake()
    })
    source.wake()
  }
}

export const scheduleRecords = (world: World): void => {
  const { loop, plan } = world
  const dice = new Dice(plan.seed, "records")
  const producers = new SourceProducers(world)
  for (let left = plan.records; left > 0;) {
    const count = Math.min(left, dice.int(1, 6))
    left -= count
    const partition = dice.int(0, plan.partitions - 1)
    loop.at(START_MS + dice.next() * plan.faultPhaseMs * 0.9, () => producers.burst(partition, count))
  }
}
