/** The conformance cases on Kafka: what the embedded cluster is held to is what Kafka does. */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { makeBench } from "../conformance/bench.ts"
import { allCases } from "../conformance/cases.ts"
import { sharedClusters } from "../kit/shared.ts"

const { source } = sharedClusters()

describe.concurrent("Kafka, as the conformance cases say", () => {
  for (const { name, run } of allCases) {
    it.live(name, () =>
      Effect.scoped(Effect.gen(function*() {
        yield* run(makeBench(yield* makeCluster("bench", { "bootstrap.servers": source.bootstrap })))
      })))
  }
})
