import { assert, describe, it } from "vitest"
import { type Ends, nothingUndone } from "../../../src/mirror/control/ends.ts"

const at = (stable: number, high: number): Ends => ({
  stable: new Map([["orders-0", stable]]),
  high: new Map([["orders-0", high]]),
  epochs: new Map()
})

describe("what a share group has left to do", () => {
  it("is nothing where all that is left belongs to an open transaction: what it gave up below can be looked for", () => {
    assert.isTrue(nothingUndone("orders-0", 6, at(8, 14), at(8, 14)))
  })

  it("is something where one record more is left than open transactions explain", () => {
    assert.isFalse(nothingUndone("orders-0", 7, at(8, 14), at(8, 14)))
  })

  it("is not known while the last stable offset moves, or where the broker does not count", () => {
    assert.isFalse(nothingUndone("orders-0", 0, at(8, 14), at(10, 14)))
    assert.isFalse(nothingUndone("orders-0", null, at(8, 14), at(8, 14)))
    assert.isFalse(nothingUndone("orders-1", 0, at(8, 14), at(8, 14)))
  })
})
