/** A run until caught up over logs that end in offsets without a record, between two clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Embedded } from "../../src/embedded/embedded.ts"
import { makeTransactionalProducer } from "../../src/txn/transactions.ts"
import { encodeBatch } from "../../src/wire/batch/records.ts"
import { makeFlowWorld } from "./flowWorld.ts"

const LONG = { timeout: 60_000 }

const recordOf = (value: string): Buffer =>
  encodeBatch([{ offset: 0, timestamp: 0n, key: null, value: Buffer.from(value), headers: [] }], { codec: "none" })

/** One transaction with one record, and its marker behind it. */
const transaction = (embedded: Embedded, topic: string, value: string, commit: boolean) =>
  Effect.scoped(Effect.gen(function*() {
    const cluster = yield* embedded.cluster("producer")
    const producer = yield* makeTransactionalProducer({ cluster, transactionalId: "loader", purpose: "loader" })
    yield* producer.begin
    yield* producer.produce([{ topic, partition: 0, bytes: recordOf(value) }])
    assert.strictEqual((yield* commit ? producer.commit : producer.abort).kind, commit ? "committed" : "aborted")
  }))

const ENDS: Readonly<
  Record<string, { readonly make: (east: Embedded) => Effect.Effect<void>; readonly more: ReadonlyArray<string> }>
> = {
  "the marker of a committed transaction": {
    make: (east) => Effect.orDie(transaction(east, "orders", "c", true)),
    more: ["c"]
  },
  "an aborted transaction": { make: (east) => Effect.orDie(transaction(east, "orders", "c", false)), more: [] },
  "offsets that compaction has taken out": {
    make: (east) =>
      Effect.sync(() => {
        east.append("orders", 0, [{ value: "c" }])
        east.punchHole("orders", 0, 2, 2)
      }),
    more: []
  }
}

const MODES = [
  ["consumer", "at-least-once"],
  ["consumer", "exactly-once"],
  ["share", "at-least-once"],
  ["share", "exactly-once"]
] as const

for (const [mode, guarantee] of MODES) {
  describe(`a run until caught up (${mode}, ${guarantee})`, () => {
    for (const [what, { make, more }] of Object.entries(ENDS)) {
      // Markers are given out like records; what compaction has taken out is not.
      if (!what.includes("compaction") && mode === "share") continue
      it.live(`ends where the log ends in ${what}`, () =>
        Effect.gen(function*() {
          const world = yield* makeFlowWorld({ "group.protocol": mode, "delivery.guarantee": guarantee })
          world.east.createTopic("orders")
          world.append("orders", 0, "a", "b")
          yield* make(world.east)
          yield* world.runAs({}, { untilCaughtUp: true })
          assert.deepStrictEqual(world.values("east.orders"), ["a", "b", ...more])
        }), LONG)
    }
  })
}
