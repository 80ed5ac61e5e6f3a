/** Memory of answers that is used again: nobody may see what another one wrote there. */
import { assert, describe, it } from "@effect/vitest"
import { Lease, ReceiveMemory } from "../../src/wire/receiveMemory.ts"

const LARGE = 100_000

describe("memory of large answers", () => {
  it("is used again, and taken from whoever still has a view on it", () => {
    const memory = new ReceiveMemory()
    const first = memory.take(LARGE)
    first.fill(1)
    const view = first.subarray(10, 20)
    memory.giveBack(first.buffer)
    const second = memory.take(LARGE - 5_000)
    second.fill(2)
    assert.deepStrictEqual([first.length, view.length], [0, 0])
    assert.throws(() => view.readInt8(0))
    assert.strictEqual(second.length, LARGE - 5_000)
  })

  it("given back twice, or never taken here, stays whose it is", () => {
    const memory = new ReceiveMemory()
    const first = memory.take(LARGE)
    const { buffer } = first
    memory.giveBack(buffer)
    const second = memory.take(LARGE)
    memory.giveBack(buffer)
    const other = Buffer.alloc(LARGE, 3)
    memory.giveBack(other.buffer)
    assert.deepStrictEqual([second.length, other.length, memory.take(LARGE).length], [LARGE, LARGE, LARGE])
    assert.notStrictEqual(memory.take(LARGE).buffer, second.buffer)
  })

  it("is not kept without a bound, and small answers are the collector's", () => {
    const memory = new ReceiveMemory()
    const taken = Array.from({ length: 40 }, () => memory.take(1024 * 1024))
    for (const { buffer } of taken) memory.giveBack(buffer)
    assert.isTrue(taken.every(({ length }) => length === 0))
    const small = memory.take(100)
    memory.giveBack(small.buffer)
    assert.lengthOf(small, 100)
  })

  it("is given back by the last one who holds it", () => {
    const memory = new ReceiveMemory()
    const answer = memory.take(LARGE)
    const lease = new Lease(memory, answer.buffer)
    lease.hold()
    lease.hold()
    lease.letGo()
    assert.lengthOf(answer, LARGE)
    lease.letGo()
    assert.lengthOf(answer, 0)
  })
})
