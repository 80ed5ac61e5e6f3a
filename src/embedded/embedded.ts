/**
 * A Kafka-compatible cluster in this process: for simulations, for KIP-1289, and for a demo without Java. This is
 * where it is made; `cluster(name)` gives clients of it that use no sockets, server.ts lets real clients in.
 *
 * What it keeps as Kafka 4.4.0 does is what test/conformance holds against both. What it does not do:
 * - Durability: everything is in memory; a broker that stops and starts keeps its data because nothing is lost, not
 *   because it was written down. There is one log a partition: replicas are names, never behind, never divergent.
 * - Retention and compaction by themselves (DeleteRecords works; `punchHole` makes the gaps that compaction leaves),
 *   tiered storage, segments.
 * - ACLs, SASL, TLS, quotas, delegation tokens, telemetry.
 * - Fetch sessions, follower fetching, the consumer protocol of KIP-848, Streams groups.
 * - Share groups: the dead-letter queue, the slower delivery of records that keep failing (KIP-1240), rack awareness;
 *   the assignment is simple; a start that was moved by AlterShareGroupOffsets counts at once (Kafka's leader goes on
 *   with what it has loaded until its next write is refused).
 * - A read never ends at a segment, because there are none.
 *
 * All time is Effect's Clock: under TestClock nothing moves by itself, and a run with the same inputs is the same run.
 */
import { Clock, Effect, type Fiber, type Scope } from "effect"
import type { Cluster } from "../wire/cluster.ts"
import { clusterOn } from "../wire/clusterClient.ts"
import { type ClientSettings, parseClientConfig, type SettingsError } from "../wire/settings.ts"
import { Engine } from "./engine.ts"
import type { Control, FaultHook } from "./faults.ts"
import { type Driver, makeEmbeddedPool } from "./link.ts"
import { type Operations, operationsOn } from "./operations.ts"
import type { ModelOptions, TxnShareDraft } from "./model/state.ts"

export interface EmbeddedOptions {
  /** Default "embedded-cluster-000". */
  readonly clusterId?: string
  /** Brokers 1 to N. Default 1. */
  readonly brokers?: number
  /** Default "off". */
  readonly kip1289?: TxnShareDraft
  /** Finalized transaction.version: 2 (default) as Kafka 4, 1 as Kafka 3, 0. */
  readonly transactionVersion?: 0 | 1 | 2
  /** Milliseconds from the answer to EndTxn to each marker; "manual": only by `releaseMarkers`. Default 1. */
  readonly markerDelayMs?: number | (() => number) | "manual"
  /** For ids. Default 1. */
  readonly seed?: number
  /** Default false. */
  readonly autoCreateTopics?: boolean
}

export interface Embedded extends Operations {
  readonly driver: Driver
  /** A client of its own: connections, caches, back-off as the real one has. Everything closes with the scope. */
  readonly cluster: (name: string, settings?: ClientSettings) => Effect.Effect<Cluster, SettingsError, Scope.Scope>
  /** What happens to every request; replaces the hook before. */
  readonly faults: (hook: FaultHook) => void
  /** The next request of this API for which `decide` says something; see faults.ts. */
  readonly control: (api: { readonly key: number }, decide: FaultHook) => Control
}

/** mulberry32: small, seeded, good enough for ids. */
const seeded = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const modelOptions = (options: EmbeddedOptions): ModelOptions => {
  const delay = options.markerDelayMs ?? 1
  return {
    clusterId: options.clusterId ?? "embedded-cluster-000",
    brokers: options.brokers ?? 1,
    kip1289: options.kip1289 ?? "off",
    transactionVersion: options.transactionVersion ?? 2,
    markerDelayMs: delay === "manual" ? null : typeof delay === "number" ? () => delay : delay,
    random: seeded(options.seed ?? 1),
    autoCreateTopics: options.autoCreateTopics ?? false
  }
}

/** Wakes the engine when something is due: one fiber sleeps, until the earliest time. */
const makeDriver = (engine: Engine): Effect.Effect<Driver, never, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    const nowMs = () => clock.currentTimeMillisUnsafe()
    let sleeper: { readonly fiber: Fiber.Fiber<void>; readonly untilMs: number } | null = null
    let closed = false
    const schedule = (): void => {
      // A client has sent something from within an answer: whoever has set the engine to work comes by here after it.
      if (closed || engine.isRunning) return
      // On a real clock time has gone on while the engine worked, and what was sent meanwhile is due by now.
      while (engine.nextDueMs <= nowMs()) engine.advance(nowMs())
      const untilMs = engine.nextDueMs
      if (untilMs === Infinity) return
      if (sleeper !== null && sleeper.untilMs <= untilMs) return
      sleeper?.fiber.interruptUnsafe()
      const wake = Effect.sync(() => {
        sleeper = null
        engine.advance(nowMs())
        schedule()
      })
      sleeper = { untilMs, fiber: fork(Effect.andThen(Effect.sleep(Math.max(0, untilMs - nowMs())), wake)) }
    }
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        closed = true
        sleeper?.fiber.interruptUnsafe()
      })
    )
    return { engine, nowMs, schedule }
  })

/** Makes a cluster; it ends with the scope. */
export const makeEmbedded = (options: EmbeddedOptions = {}): Effect.Effect<Embedded, never, Scope.Scope> =>
  Effect.gen(function*() {
    const engine = new Engine(modelOptions(options))
    const driver = yield* makeDriver(engine)
    const bootstrap = () =>
      [...engine.state.brokers.values()].map((broker) => `${broker.host}:${broker.port}`).join(",")
    return {
      ...operationsOn(driver),
      driver,
      cluster: (name, settings = {}) =>
        Effect.gen(function*() {
          const config = yield* parseClientConfig({ "client.id": name, ...settings, "bootstrap.servers": bootstrap() })
          return clusterOn(name, config, yield* makeEmbeddedPool(driver, name, config))
        }),
      faults: (hook) => engine.faults.setAlways(hook),
      control: (api, decide) => engine.faults.control(api.key, decide)
    }
  })
