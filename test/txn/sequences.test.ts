import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { addSequence, MAX_PRODUCER_EPOCH, PartitionSequences, type Slot } from "../../src/txn/sequences.ts"
import { PartitionLog } from "./partitionLog.ts"

const MAX = 0x7fff_ffff

/** A partition that may pipeline: the first batch is confirmed. */
const confirmed = (items: ReadonlyArray<string>, counts: ReadonlyArray<number> = []): PartitionSequences<string> => {
  const sequences = new PartitionSequences<string>({ mayRestart: true })
  sequences.assign({ producerId: 7, epoch: 0 })
  sequences.enqueue("first", 1)
  sequences.written(send(sequences))
  items.forEach((item, index) => sequences.enqueue(item, counts[index] ?? 1))
  return sequences
}
const send = (sequences: PartitionSequences<string>): Slot<string> => {
  const step = sequences.step()
  assert.strictEqual(step.kind, "send")
  if (step.kind !== "send") throw new Error("not ready")
  sequences.sent(step.slot)
  return step.slot
}
const kind = (sequences: PartitionSequences<string>): string => sequences.step().kind

describe("sequence numbers of a partition", () => {
  it("count records and wrap from 2^31 - 1 to 0", () => {
    assert.strictEqual(addSequence(0, 10), 10)
    assert.strictEqual(addSequence(MAX - 9, 9), MAX)
    assert.strictEqual(addSequence(MAX - 9, 10), 0)
    assert.strictEqual(addSequence(MAX - 9, 15), 5)
    assert.strictEqual(addSequence(MAX, 1), 0)
  })

  it("nothing is sent before there is a producer id", () => {
    const sequences = new PartitionSequences<string>({ mayRestart: true })
    assert.strictEqual(kind(sequences), "wait")
    sequences.enqueue("a", 3)
    assert.strictEqual(kind(sequences), "identity")
  })

  it("the first batch of an identity goes alone, then five are in flight", () => {
    const sequences = new PartitionSequences<string>({ mayRestart: true })
    sequences.assign({ producerId: 7, epoch: 0 })
    for (let i = 0; i < 8; i++) sequences.enqueue(`${i}`, 10)
    const first = send(sequences)
    assert.strictEqual(kind(sequences), "wait")
    sequences.written(first)
    const sent = [1, 2, 3, 4, 5].map(() => send(sequences).sequence)
    assert.deepStrictEqual(sent, [10, 20, 30, 40, 50])
    assert.strictEqual(kind(sequences), "wait")
  })

  it("a lost answer is asked for again with the same number, before anything new is sent", () => {
    const sequences = confirmed(["a", "b", "c"])
    const a = send(sequences)
    const b = send(sequences)
    sequences.retry(a, { maybeWritten: true })
    const again = send(sequences)
    assert.strictEqual(again.item, "a")
    assert.strictEqual(again.sequence, a.sequence)
    assert.strictEqual(kind(sequences), "wait")
    sequences.written(a)
    sequences.written(b)
    assert.strictEqual(send(sequences).item, "c")
  })

  it("while an answer is missing, no more than five batches are numbered from that one on, whatever is settled behind it", () => {
    const sequences = confirmed(["a", "b", "c", "d", "e", "f"])
    const [, b] = [1, 2, 3, 4, 5].map(() => send(sequences))
    sequences.written(b as Slot<string>)
    assert.strictEqual(kind(sequences), "wait", "a sixth would push the first out of what the broker remembers")
  })

  it("what a refused batch leaves behind goes under the next epoch, in order, once nothing is in flight", () => {
    const sequences = confirmed(["a", "b", "c"])
    const [a, b, c] = [send(sequences), send(sequences), send(sequences)]
    sequences.refused(a)
    assert.strictEqual(kind(sequences), "wait")
    sequences.outOfOrder(b)
    assert.strictEqual(kind(sequences), "wait")
    sequences.outOfOrder(c)
    const first = send(sequences)
    assert.deepStrictEqual([first.item, first.sequence, sequences.identity], ["b", 0, { producerId: 7, epoch: 1 }])
    sequences.written(first)
    assert.deepStrictEqual([send(sequences).item, c.sequence], ["c", 1])
  })

  it("a refused batch that was the last one leaves no hole and costs no epoch", () => {
    const sequences = confirmed(["a"])
    sequences.refused(send(sequences))
    sequences.enqueue("a, cut", 1)
    assert.deepStrictEqual([send(sequences).sequence, sequences.identity?.epoch], [1, 0])
  })

  it("what may be in the log before a hole is settled under its old number, never numbered anew", () => {
    const sequences = confirmed(["a", "b", "c"])
    const [a, b, c] = [send(sequences), send(sequences), send(sequences)]
    sequences.retry(a, { maybeWritten: true })
    sequences.refused(b)
    sequences.outOfOrder(c)
    const again = send(sequences)
    assert.deepStrictEqual([again.item, again.sequence, sequences.identity?.epoch], ["a", 1, 0])
    sequences.written(again)
    assert.deepStrictEqual([send(sequences).item, sequences.identity?.epoch], ["c", 1])
  })

  it("a batch given up while it may be in the log is fenced by the next epoch", () => {
    const sequences = confirmed(["a"])
    sequences.drop(send(sequences))
    sequences.enqueue("b", 1)
    assert.deepStrictEqual([send(sequences).sequence, sequences.identity?.epoch], [0, 1])
  })

  it("out of order in the first place means that the broker lost our state; behind others it means wait", () => {
    const sequences = confirmed(["a", "b"])
    const [a, b] = [send(sequences), send(sequences)]
    sequences.outOfOrder(b)
    assert.isFalse(sequences.hasHole)
    sequences.outOfOrder(a)
    assert.isTrue(sequences.hasHole)
    assert.deepStrictEqual([send(sequences).item, sequences.identity?.epoch], ["a", 1])
  })

  it("used-up epochs ask for another producer id", () => {
    const sequences = new PartitionSequences<string>({ mayRestart: true })
    sequences.assign({ producerId: 7, epoch: MAX_PRODUCER_EPOCH })
    sequences.enqueue("a", 1)
    sequences.drop(send(sequences))
    sequences.enqueue("b", 1)
    assert.strictEqual(kind(sequences), "identity")
    sequences.assign({ producerId: 8, epoch: 0 })
    assert.strictEqual(send(sequences).sequence, 0)
  })

  it("in a transaction, what stands before a hole is still settled, and what was held back behind it is waited for", () => {
    const sequences = new PartitionSequences<string>({ mayRestart: false })
    sequences.assign({ producerId: 7, epoch: 0 }, { zeroFirst: true })
    for (const item of ["a", "b", "c"]) sequences.enqueue(item, 1)
    const [a, b, c] = [send(sequences), send(sequences), send(sequences)]
    sequences.retry(a, { maybeWritten: true })
    sequences.refused(b)
    assert.strictEqual(send(sequences).item, "a")
    sequences.written(a)
    assert.strictEqual(kind(sequences), "wait")
    sequences.outOfOrder(c)
    const again = send(sequences)
    assert.deepStrictEqual([again.item, again.sequence], ["c", b.sequence], "refused numbers are free again")
    assert.isFalse(sequences.hasHole)
  })

  it("in a transaction, numbers behind a refused batch are used again only where all of them were refused", () => {
    const behind: ReadonlyArray<
      readonly [string, (sequences: PartitionSequences<string>, slot: Slot<string>) => void, string]
    > = [
      ["refused", (sequences, slot) => sequences.refused(slot), "send"],
      ["without an answer", (sequences, slot) => sequences.retry(slot, { maybeWritten: true }), "broken"],
      ["given up in flight", (sequences, slot) => sequences.drop(slot), "broken"],
      ["written", (sequences, slot) => sequences.written(slot), "broken"]
    ]
    for (const [what, end, expected] of behind) {
      const sequences = new PartitionSequences<string>({ mayRestart: false })
      sequences.assign({ producerId: 7, epoch: 0 }, { zeroFirst: true })
      for (const item of ["a", "b"]) sequences.enqueue(item, 3)
      const [a, b] = [send(sequences), send(sequences)]
      sequences.refused(a)
      assert.isTrue(sequences.hasHole, what)
      end(sequences, b)
      sequences.enqueue("c", 1)
      assert.deepStrictEqual([kind(sequences), sequences.hasHole], [expected, expected === "broken"], what)
      if (expected === "send") assert.strictEqual(send(sequences).sequence, 0)
    }
  })

  it("a transaction's partition with a hole is broken, not numbered anew", () => {
    const sequences = new PartitionSequences<string>({ mayRestart: false })
    sequences.assign({ producerId: 7, epoch: 0 })
    sequences.enqueue("a", 1)
    sequences.enqueue("b", 1)
    sequences.drop(send(sequences))
    assert.strictEqual(kind(sequences), "broken")
  })
})

/** One request on its way. `gone`: the client has given it up; it may still arrive. */
interface Flight {
  readonly slot: Slot<number>
  readonly producerId: number
  readonly epoch: number
  readonly sequence: number
  readonly count: number
  readonly item: number
  answer: number | null
  gone: boolean
}

/** Plays a tape of choices against a broker, then lets everything through until all is settled. */
class Play {
  readonly sequences = new PartitionSequences<number>({ mayRestart: true })
  readonly broker = new PartitionLog<number>()
  readonly written: Array<number> = []
  readonly bad: ReadonlySet<number>
  flights: Array<Flight> = []
  #producerId = 1
  readonly #hold: boolean

  constructor(counts: ReadonlyArray<number>, bad: ReadonlySet<number>, hold: boolean) {
    this.bad = bad
    this.#hold = hold
    counts.forEach((count, item) => this.sequences.enqueue(item, count))
  }

  send(): boolean {
    const step = this.sequences.step()
    if (step.kind === "identity") {
      this.sequences.assign({ producerId: this.#producerId++, epoch: 0 })
      return true
    }
    if (step.kind !== "send") return false
    this.sequences.sent(step.slot)
    const { identity, sequence, slot } = step
    this.flights.push({ slot, ...identity, sequence, count: slot.count, item: slot.item, answer: null, gone: false })
    return true
  }
  arrive(flight: Flight): void {
    if (flight.answer !== null) return
    flight.answer = this.bad.has(flight.item)
      ? 10
      : this.broker.append(flight.item, flight.producerId, flight.epoch, flight.sequence, flight.count).code
    if (flight.gone) this.flights = this.flights.filter((f) => f !== flight)
  }
  hear(flight: Flight): void {
    if (flight.answer === null || flight.gone) return
    this.flights = this.flights.filter((f) => f !== flight)
    const { slot } = flight
    if (flight.answer === 0) {
      this.written.push(slot.item)
      return this.sequences.written(slot)
    }
    if (flight.answer === 45) return this.sequences.outOfOrder(slot)
    if (flight.answer === 47) return this.sequences.identityLost(slot)
    const behind = this.sequences.slots.slice(this.sequences.slots.indexOf(slot) + 1).reverse()
    if (this.#hold) { for (const next of behind) if (next.state !== "inFlight") this.sequences.drop(next) }
    this.sequences.refused(slot)
  }
  /** The client hears nothing; the request may arrive later all the same. */
  lose(flight: Flight, arrivesLater: boolean): void {
    if (flight.gone) return
    flight.gone = true
    this.sequences.retry(flight.slot, { maybeWritten: true })
    if (!arrivesLater || flight.answer !== null) this.flights = this.flights.filter((f) => f !== flight)
  }
  interrupt(): void {
    for (const flight of this.flights) flight.gone = true
    this.flights = this.flights.filter((f) => f.answer === null)
    for (const slot of [...this.sequences.slots].reverse()) this.sequences.drop(slot)
  }
  finish(): void {
    for (let rounds = 0; this.sequences.slots.length > 0; rounds++) {
      assert.isBelow(rounds, 10_000, "it never comes to an end")
      while (this.send());
      const flight = this.flights.find((f) => !f.gone)
      if (flight === undefined) continue
      this.arrive(flight)
      this.hear(flight)
    }
    for (const ghost of this.flights) this.arrive(ghost)
  }
}

const act = (play: Play, choice: number): void => {
  const flight = play.flights[Math.floor(choice / 16) % Math.max(1, play.flights.length)]
  const what = choice % 16
  if (what < 6 || flight === undefined) return void play.send()
  if (what < 10) return play.arrive(flight)
  if (what < 13) return play.hear(flight)
  play.lose(flight, what === 13)
}

const tape = fc.array(fc.nat(16 * 60), { maxLength: 200, size: "max" })
const counts = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 14, size: "max" })

describe("under any interleaving of requests, answers and losses", () => {
  it("every batch is in the log exactly once, in order", () => {
    fc.assert(
      fc.property(counts, tape, (batches, choices) => {
        const play = new Play(batches, new Set(), false)
        for (const choice of choices) act(play, choice)
        play.finish()
        const log = play.broker.log.map((b) => b.item)
        assert.deepStrictEqual(log, batches.map((_, item) => item))
        assert.deepStrictEqual([...play.written].sort((a, b) => a - b), log)
      }),
      { numRuns: 1_000 }
    )
  })

  it("refused batches are missing, all others are in the log exactly once, in order", () => {
    fc.assert(
      fc.property(counts, tape, fc.array(fc.nat(13), { maxLength: 4 }), (batches, choices, bad) => {
        const play = new Play(batches, new Set(bad), false)
        for (const choice of choices) act(play, choice)
        play.finish()
        assert.deepStrictEqual(
          play.broker.log.map((b) => b.item),
          batches.map((_, item) => item).filter((item) => !play.bad.has(item))
        )
      }),
      { numRuns: 1_000 }
    )
  })

  it("with what follows a refused batch held back, the log never has a batch behind the refused one", () => {
    fc.assert(
      fc.property(counts, tape, fc.nat(13), (batches, choices, bad) => {
        const play = new Play(batches, new Set([bad]), true)
        for (const choice of choices) act(play, choice)
        play.finish()
        const log = play.broker.log.map((b) => b.item)
        assert.deepStrictEqual(log.slice(0, bad), batches.map((_, item) => item).slice(0, bad))
        assert.isTrue(play.written.every((item) => log.includes(item)))
      }),
      { numRuns: 700 }
    )
  })

  it("after an interruption nothing is in the log twice, nor out of order", () => {
    fc.assert(
      fc.property(counts, tape, tape, (batches, before, after) => {
        const play = new Play(batches, new Set(), false)
        for (const choice of before) act(play, choice)
        play.interrupt()
        batches.forEach((count, index) => play.sequences.enqueue(batches.length + index, count))
        for (const choice of after) act(play, choice)
        play.finish()
        const log = play.broker.log.map((b) => b.item)
        assert.deepStrictEqual(log, [...new Set(log)].sort((a, b) => a - b))
        assert.deepStrictEqual(
          log.filter((item) => item >= batches.length),
          batches.map((_, index) => batches.length + index)
        )
      }),
      { numRuns: 1_000 }
    )
  })
})
