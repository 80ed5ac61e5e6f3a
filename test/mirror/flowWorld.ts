/** A whole flow between two clusters of this process, over real sockets and in real time. */
import { Effect, Logger, type Scope } from "effect"
import { type Embedded, makeEmbedded } from "../../src/embedded/embedded.ts"
import { serve } from "../../src/embedded/server.ts"
import type { ResolvedConfig } from "../../src/config/types.ts"
import { type CheckReport, checkService } from "../../src/mirror/check.ts"
import { runService } from "../../src/mirror/service.ts"
import { decodeRecords } from "../../src/wire/batch/records.ts"
import { load, type Plain } from "../kit/configFile.ts"
import { until } from "../kit/until.ts"

export interface FlowWorld {
  readonly east: Embedded
  readonly west: Embedded
  /** "Warn ...", as logged. */
  readonly lines: ReadonlyArray<string>
  /** The configuration with these settings of the flow, and other flows between the two. */
  readonly config: (flow: Plain, others?: ReadonlyArray<Plain>) => Effect.Effect<ResolvedConfig>
  /** Starts the service; it stops with the scope. */
  readonly run: Effect.Effect<void, never, Scope.Scope>
  /** The same with other settings of the flow; with `untilCaughtUp` it waits for the end. */
  readonly runAs: (
    flow: Plain,
    options?: { readonly untilCaughtUp?: boolean }
  ) => Effect.Effect<void, never, Scope.Scope>
  /** What `check` says of the flow with these settings. */
  readonly check: (flow: Plain) => Effect.Effect<CheckReport>
  readonly append: (topic: string, partition: number, ...values: ReadonlyArray<string>) => void
  /** All that a topic of the target holds, sorted; also what is not committed. */
  readonly values: (topic: string) => ReadonlyArray<string>
  readonly until: (what: string, condition: () => boolean) => Effect.Effect<void>
}

/** What the log of a topic holds, markers left out. */
const valuesOf = (embedded: Embedded, topic: string): ReadonlyArray<string> =>
  (embedded.state.topics.get(topic)?.partitions ?? []).flatMap(({ log }) =>
    log.batches.filter(({ view }) => !view.isControl).flatMap(({ view }) =>
      decodeRecords(view).map(({ value }) => value?.toString() ?? "null")
    )
  ).toSorted()

export const makeFlowWorld = (
  flow: Plain = {},
  over: Plain = {},
  { brokers = 1, transactionVersion = 2 }: { readonly brokers?: number; readonly transactionVersion?: 1 | 2 } = {}
): Effect.Effect<FlowWorld, never, Scope.Scope> =>
  Effect.gen(function*() {
    const east = yield* makeEmbedded({ clusterId: "east-cluster-0000000000", brokers })
    const west = yield* makeEmbedded({ clusterId: "west-cluster-0000000000", transactionVersion })
    const [source, target] = [yield* Effect.orDie(serve(east)), yield* Effect.orDie(serve(west))]
    const configOf = (more: Plain, others: ReadonlyArray<Plain> = []) =>
      load({
        clusters: {
          east: { "bootstrap.servers": source.bootstrap },
          west: { "bootstrap.servers": target.bootstrap }
        },
        "shutdown.timeout.ms": 2_000,
        ...over,
        flows: [{
          name: "flow",
          source: "east",
          target: "west",
          topics: [".*"],
          "group.id": "flow",
          "tasks.max": 1,
          "replication.factor": 1,
          "refresh.topics.interval.seconds": 1,
          ...flow,
          ...more
        }, ...others]
      })
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      lines.push(`${logLevel} ${[message].flat().join(" ")}`)
      if (process.env["SHOW"]) console.log(performance.now() | 0, lines.at(-1))
    })
    const runAs: FlowWorld["runAs"] = (more, { untilCaughtUp = false } = {}) =>
      Effect.gen(function*() {
        const loaded = yield* configOf(more)
        if (loaded.config === null) throw new Error(loaded.lines.join("\n"))
        const service = runService({ ...loaded.config, http: null }, { untilCaughtUp }).pipe(
          Effect.catch((error) => Effect.sync(() => void lines.push(`failed: ${error.message}`))),
          Effect.provide(Logger.layer([logger]))
        )
        yield* untilCaughtUp ? Effect.scoped(service) : Effect.forkScoped(service)
      })
    return {
      east,
      west,
      lines,
      config: (more, others) =>
        Effect.map(configOf(more, others), ({ config, lines: wrong }) => {
          if (config === null) throw new Error(wrong.join("\n"))
          return config
        }),
      run: runAs({}),
      check: (more) =>
        Effect.gen(function*() {
          const loaded = yield* configOf(more)
          if (loaded.config === null) throw new Error(loaded.lines.join("\n"))
          return yield* checkService(loaded.config)
        }),
      runAs,
      append: (topic, partition, ...values) => void east.append(topic, partition, values.map((value) => ({ value }))),
      values: (topic) => valuesOf(west, topic),
      until: (what, condition) =>
        Effect.asVoid(
          Effect.promise(() =>
            until(condition, { timeoutMs: 40_000, what: () => `${what}; logged:\n${lines.join("\n")}` })
          )
        )
    }
  })
