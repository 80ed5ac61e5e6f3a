/** What a new ledger takes over from the group, on the cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import { adoptProgress } from "../../../src/txn/ledger/adopt.ts"
import { knownOf } from "../../../src/txn/ledger/positions.ts"
import type { DecidedAt } from "../../../src/txn/ledger/regime.ts"
import { openWorker } from "../../../src/txn/ledger/worker.ts"
import { makeProducer } from "../../../src/txn/producer.ts"
import { passing } from "../../kit/passing.ts"

/** A hundred seconds at most. */
const soon = <A, E, R>(effect: Effect.Effect<A, E, R>) => passing(effect, 50, 2_000)

const at = (below: number): DecidedAt => ({
  topic: "orders",
  topicId: "AAECAwQFBgcICQoLDA0ODw",
  partition: 0,
  ranges: [{ first: 0, last: below - 1 }]
})

/** Each start of a flow in turn: whether it adopts, and what is done then. */
const starts = (partitions: number, ...progress: ReadonlyArray<ReadonlyArray<DecidedAt>>) =>
  Effect.scoped(Effect.gen(function*() {
    const source = yield* makeEmbedded({ clusterId: "source-cluster-000" })
    const target = yield* (yield* makeEmbedded({ clusterId: "target-cluster-000", seed: 2 })).cluster("worker")
    const found: Array<readonly [boolean | null, ReadonlyArray<string>]> = []
    for (const one of progress) {
      const start = Effect.gen(function*() {
        const worker = yield* openWorker({
          source: yield* source.cluster("worker"),
          target,
          flow: "f",
          patienceMs: 10_000,
          partitions,
          log: () => {}
        })
        const adopted = yield* adoptProgress(worker, yield* makeProducer({ cluster: target, purpose: "adopt" }), one)
        const { done } = yield* knownOf(worker, at(0))
        found.push([adopted, done.map(({ first, last }) => `${first}-${last}`)])
      })
      yield* soon(Effect.scoped(start))
    }
    return found
  }))

describe("a flow's first start", () => {
  for (const partitions of [1, 3]) {
    it.effect(`notes what the group had done before; later starts note nothing (${partitions} ledger partitions)`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* starts(partitions, [at(10)], [at(30)]), [[true, ["0-9"]], [false, ["0-9"]]])
      }))

    it.effect(`notes that there was nothing: what the group gives up afterwards is missing, not done (${partitions})`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* starts(partitions, [], [at(30)]), [[true, []], [false, []]])
      }))
  }
})
