/** The conformance cases on the embedded cluster; test/integration/conformance.test.ts runs them on Kafka. */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { makeBench } from "./bench.ts"
import { allCases } from "./cases.ts"

describe("the embedded cluster, as Kafka", () => {
  for (const { name, run } of allCases) {
    it.live(name, () =>
      Effect.scoped(Effect.gen(function*() {
        const embedded = yield* makeEmbedded({ clusterId: "conformance" })
        yield* run(makeBench(yield* embedded.cluster("bench")))
      })))
  }
})
