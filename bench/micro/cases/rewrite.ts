/** Passing batches through: the header rewritten, and a partition's answer taken apart for it. */
import { passThroughVerdict } from "../../../src/wire/batch/passThrough.ts"
import { type BatchView, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { rewriteForProduce } from "../../../src/wire/batch/rewrite.ts"
import { batchOf, type MicroCase } from "../microCase.ts"

const viewOf = (bytes: Buffer): BatchView => splitBatches(bytes)[0] as BatchView
const header = (n: number) => ({
  producerId: 4_000_000_000 + n,
  producerEpoch: n & 0xfff,
  baseSequence: n,
  transactional: true
})

const rewrite: MicroCase = {
  name: "rewrite a batch",
  warmUp: 4000,
  operations: 1000,
  prepare: () => {
    const view = viewOf(batchOf(30, 1000, "lz4"))
    return (n) => rewriteForProduce(view, header(n))
  }
}

const passThrough: MicroCase = {
  name: "pass through a partition's 64 batches",
  warmUp: 150,
  operations: 25,
  prepare: () => {
    const batch = batchOf(30, 1000, "lz4")
    const records = Buffer.concat(Array.from({ length: 64 }, () => batch))
    return (n) => {
      const passed: Array<Buffer> = []
      for (const view of splitBatches(records)) {
        if (!passThroughVerdict(view).ok) continue
        rewriteForProduce(view, header(n))
        passed.push(view.bytes)
      }
      return passed
    }
  }
}

export const cases: ReadonlyArray<MicroCase> = [rewrite, passThrough]
