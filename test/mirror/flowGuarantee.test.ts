/** A binding that comes and goes while a flow runs: KIP-1289 is switched on and off in a cluster of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { serve } from "../../src/embedded/server.ts"
import { runService } from "../../src/mirror/service.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { SHARE_FEATURE, SHARE_VERSION } from "../../src/wire/kip1289.ts"
import { load } from "../kit/configFile.ts"
import { until } from "../kit/until.ts"

const record = (from: number, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `v${String(from + n).padStart(3, "0")}`)

describe("the cluster's features change while a flow runs", () => {
  it.live(
    "the flow goes over to what can hold now, in order, and each record is mirrored once",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const cluster = yield* makeEmbedded({ kip1289: "B" })
        cluster.createTopic("orders")
        const { bootstrap } = yield* Effect.orDie(serve(cluster))
        const loaded = yield* load({
          clusters: { east: { "bootstrap.servers": bootstrap }, west: { "bootstrap.servers": bootstrap } },
          "shutdown.timeout.ms": 5_000,
          flows: [{
            name: "flow",
            source: "east",
            target: "west",
            topics: ["orders"],
            "group.id": "flow",
            "tasks.max": 2,
            "replication.factor": 1,
            "exactly.once.fallback": "fail",
            "refresh.topics.interval.seconds": 1
          }]
        })
        if (loaded.config === null) throw new Error(loaded.lines.join("\n"))
        const lines: Array<string> = []
        const logger = Logger.make<unknown, void>(({ message }) => void lines.push([message].flat().join(" ")))
        yield* Effect.forkScoped(
          Effect.ignore(runService({ ...loaded.config, http: null }, { untilCaughtUp: false })).pipe(
            Effect.provide(Logger.layer([logger]))
          )
        )
        const level = (to: number) => {
          const feature = cluster.state.features.get(SHARE_FEATURE)
          if (feature === undefined) throw new Error("no share feature")
          cluster.state.features.set(SHARE_FEATURE, { ...feature, level: to })
        }
        const copied = () =>
          (cluster.state.topics.get("east.orders")?.partitions ?? []).flatMap(({ log }) =>
            // As readers in read_committed see it: what was aborted and written again is no second one.
            log.batches.filter(({ base, view }) =>
              !view.isControl &&
              !log.aborted.some((one) =>
                one.producerId === view.producerId && one.firstOffset <= base && base <= one.lastOffset
              )
            ).flatMap(({ view }) => decodeRecords(view).map(({ value }) => String(value)))
          )
        const wait = (what: string, condition: () => boolean) =>
          Effect.promise(() =>
            until(condition, { timeoutMs: 60_000, what: () => `${what}; logged:\n${lines.join("\n")}` })
          )
        const inForce = (binding: string, times: number) =>
          wait(
            `${binding} in force`,
            () => lines.filter((line) => line === `guarantee in force: exactly-once (${binding})`).length === times
          )
        let sent = 0
        const mirrored = (count: number) => {
          cluster.append("orders", 0, record(sent, count).map((value) => ({ value })))
          sent += count
          // Acknowledged: nothing of them is in a transaction that could be aborted by the change.
          return wait(`${sent} records`, () => (cluster.sharePartition("flow", "orders", 0)?.start ?? 0) >= sent)
        }
        yield* inForce("kip-1289", 1)
        yield* mirrored(10)
        level(SHARE_VERSION - 1)
        yield* inForce("ledger", 1)
        yield* mirrored(10)
        level(SHARE_VERSION)
        yield* inForce("kip-1289", 2)
        yield* mirrored(10)
        level(SHARE_VERSION - 1)
        yield* inForce("ledger", 2)
        yield* mirrored(10)
        // What repair would mirror again it would have seen by now.
        yield* wait("the return", () => lines.some((line) => line.includes("the ledger is in force again: 10 offsets")))
        assert.deepStrictEqual(copied().toSorted(), record(0, 40), lines.join("\n"))
        assert.lengthOf(lines.filter((line) => line.startsWith("the guarantee changes: ")), 3)
        assert.notMatch(lines.join("\n"), /gave up/)
      })),
    180_000
  )
})
