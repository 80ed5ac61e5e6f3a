/** The demo's two clusters: Kafka's own brokers, or ours in this process (`--kafka=embedded`), which need no Java. */
import { Effect, Exit, Scope } from "effect"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { serve } from "../../src/embedded/server.ts"
import type { Bootstrap } from "../../test/kit/loader.ts"
import { startClusters } from "../../test/kit/kafka.ts"

export interface DemoClusters {
  readonly east: Bootstrap
  readonly west: Bootstrap
  readonly stop: () => Promise<void>
}

const ofKafka = async (): Promise<DemoClusters> => {
  const [east, west] = await startClusters([{ name: "east" }, { name: "west" }])
  if (east === undefined || west === undefined) throw new Error("two clusters were started, and there are not two")
  return { east, west, stop: async () => void await Promise.all([east.stop(), west.stop()]) }
}

/** In memory, on loopback, gone with this process. */
const embedded = async (): Promise<DemoClusters> => {
  const scope = await Effect.runPromise(Scope.make())
  const one = (name: string, seed: number): Promise<Bootstrap> =>
    Effect.runPromise(
      Scope.provide(scope)(Effect.flatMap(makeEmbedded({ clusterId: `embedded-${name}`, seed }), (made) => serve(made)))
    )
  const [east, west] = [await one("east", 1), await one("west", 2)]
  return { east, west, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

export type DemoKafka = "broker" | "embedded"

export const startDemoClusters = (kind: DemoKafka): Promise<DemoClusters> =>
  kind === "embedded" ? embedded() : ofKafka()
