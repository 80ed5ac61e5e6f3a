/** The service around the flows on virtual time; what a flow does is the test's. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import type { ResolvedConfig } from "../../src/config/types.ts"
import { FlowStopped, type ServiceError } from "../../src/mirror/errors.ts"
import type { FlowHandle } from "../../src/mirror/flow.ts"
import { type RunFlow, runService } from "../../src/mirror/service.ts"
import { CLUSTERS, load } from "../kit/configFile.ts"

const configured = (names: ReadonlyArray<string>): Effect.Effect<ResolvedConfig> =>
  Effect.map(
    load({
      clusters: CLUSTERS,
      "shutdown.timeout.ms": 5_000,
      flows: names.map((name) => ({ name, source: "east", target: "west", "group.id": name }))
    }),
    ({ config, lines }) => {
      if (config === null) throw new Error(lines.join("\n"))
      return { ...config, http: null }
    }
  )

class Trouble extends Error {}

interface Bench {
  /** "a: start", "a: end", "a: interrupted", in order, with virtual seconds. */
  readonly log: Array<string>
  readonly lines: Array<string>
  readonly handles: Map<string, FlowHandle>
}

type Behaviour = (handle: FlowHandle, nth: number) => ReturnType<RunFlow>

const running: Behaviour = (handle) =>
  Effect.gen(function*() {
    handle.state.become("running", null, 0)
    yield* Deferred.succeed(handle.started, undefined)
    while (!handle.stopping()) yield* Effect.sleep("100 millis")
  })

const failing = (message: string): Behaviour => () => Effect.fail(new Trouble(message))
const stopped = (what: string): Behaviour => () => Effect.fail(new FlowStopped({ what }))

/** Starts the service; its fiber ends when the service does. */
const start = (flows: Readonly<Record<string, Behaviour>>, options = { untilCaughtUp: false }) =>
  Effect.gen(function*() {
    const bench: Bench = { log: [], lines: [], handles: new Map() }
    const counts = new Map<string, number>()
    const run: RunFlow = (_, handle) => {
      const { name } = handle.flow
      const nth = (counts.get(name) ?? 0) + 1
      counts.set(name, nth)
      bench.handles.set(name, handle)
      bench.log.push(`${name}: start ${nth}`)
      return (flows[name] as Behaviour)(handle, nth).pipe(
        Effect.tap(() => Effect.sync(() => void bench.log.push(`${name}: end`))),
        Effect.onInterrupt(() => Effect.sync(() => void bench.log.push(`${name}: interrupted`)))
      )
    }
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      if (logLevel !== "Debug") bench.lines.push(`${logLevel} ${[message].flat().join(" ")}`)
    })
    const config = yield* configured(Object.keys(flows))
    const fiber = yield* Effect.forkChild(
      runService(config, options, run).pipe(Effect.provide(Logger.layer([logger])))
    )
    yield* TestClock.adjust("1 millis")
    const state = (name: string) => bench.handles.get(name)?.state
    const starts = (name: string) => bench.log.filter((line) => line.startsWith(`${name}: start`)).length
    /** A stop takes (virtual) time. */
    const stop = Effect.gen(function*() {
      const stopping = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1 second")
      yield* Fiber.await(stopping)
    })
    return { ...bench, fiber, state, starts, stop }
  })

const errorOf = (exit: Exit.Exit<void, ServiceError>): ReadonlyArray<string> => {
  if (Exit.isSuccess(exit)) return []
  return exit.cause.reasons.flatMap((reason) => "error" in reason ? reason.error.lines : ["not a failure"])
}

describe("a flow that fails", () => {
  it.effect("is started again with a back-off that doubles, its state says why, and the other flow never notices", () =>
    Effect.gen(function*() {
      const flaky: Behaviour = (handle, nth) =>
        nth < 4 ? failing(`no route, try ${nth}`)(handle, nth) : running(handle, nth)
      const service = yield* start({ a: flaky, b: running })
      assert.deepInclude(service.state("a"), { state: "retrying", reason: "no route, try 1" })
      assert.strictEqual(service.state("b")?.state, "running")
      // 1, 2 and 4 seconds, each with up to a fifth of jitter.
      yield* TestClock.adjust("1300 millis")
      assert.strictEqual(service.starts("a"), 2)
      yield* TestClock.adjust("2500 millis")
      assert.strictEqual(service.starts("a"), 3)
      assert.deepInclude(service.state("a"), { state: "retrying", reason: "no route, try 3" })
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(service.state("a"), { state: "running", reason: null })
      assert.strictEqual(service.starts("b"), 1)
      yield* service.stop
    }))

  it.effect("waits no longer than a minute and a fifth between two tries", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: failing("down"), b: running })
      yield* TestClock.adjust("10 minutes")
      const before = service.starts("a")
      yield* TestClock.adjust("72 seconds")
      assert.isAbove(service.starts("a"), before)
      yield* service.stop
    }))

  it.effect("one that something inside it has interrupted is started again: it must not end in silence", () =>
    Effect.gen(function*() {
      const service = yield* start({
        a: (handle, nth) => (nth === 1 ? Effect.interrupt : running(handle, nth)),
        b: running
      })
      assert.strictEqual(service.state("a")?.state, "retrying")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(service.starts("a"), 2)
      assert.strictEqual(service.state("a")?.state, "running")
      yield* service.stop
    }))

  it.effect("a defect is a failure like any other: the process goes on", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: () => Effect.die(new Trouble("a mistake of ours")), b: running })
      assert.deepInclude(service.state("a"), { state: "retrying", reason: "a mistake of ours" })
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(service.starts("a"), 2)
      yield* service.stop
    }))

  it.effect("FlowStopped stays failed, with the reason, and stops no other", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: stopped("record 7 is bad"), b: running })
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(service.starts("a"), 1)
      assert.deepInclude(service.state("a"), { state: "failed", reason: "record 7 is bad" })
      assert.strictEqual(service.state("b")?.state, "running")
      assert.deepStrictEqual(service.lines, ["Error the flow has stopped: record 7 is bad"])
      yield* service.stop
    }))
})

describe("the service fails", () => {
  it.effect("when no flow could be started, with one line for each, and says nothing else that is not true", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: failing("wrong password") })
      const exit = yield* Fiber.await(service.fiber)
      assert.deepStrictEqual(errorOf(exit), ["flow a: wrong password"])
      assert.deepStrictEqual(service.lines, [])
      assert.strictEqual(service.starts("a"), 1)
    }))

  it.effect("with a line for each flow that could not be started", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: failing("wrong password"), b: stopped("no exactly-once here") })
      const exit = yield* Fiber.await(service.fiber)
      assert.deepStrictEqual(errorOf(exit), ["flow a: wrong password", "flow b: no exactly-once here"])
    }))

  it.effect("when the last flow has stopped for good after it ran", () =>
    Effect.gen(function*() {
      const once: Behaviour = (handle) =>
        Effect.gen(function*() {
          handle.state.become("running", null, 0)
          yield* Deferred.succeed(handle.started, undefined)
          yield* Effect.sleep("10 seconds")
          return yield* new FlowStopped({ what: "orders-0: records are gone" })
        })
      const service = yield* start({ a: once })
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(errorOf(yield* Fiber.await(service.fiber)), ["flow a: orders-0: records are gone"])
      assert.deepStrictEqual(service.lines, [])
    }))
})

describe("a stop", () => {
  it.effect("lets a flow that runs finish what it is at, and ends without an error", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: running })
      yield* service.stop
      assert.deepStrictEqual(service.log, ["a: start 1", "a: end"])
      assert.strictEqual(service.state("a")?.state, "stopped")
    }))

  it.effect("does not wait for the next try of a flow that failed", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: failing("down"), b: running })
      yield* TestClock.adjust("5 minutes")
      const before = service.starts("a")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(service.fiber))
      yield* TestClock.adjust("200 millis")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(stopping)))
      assert.strictEqual(service.starts("a"), before)
    }))

  it.effect("interrupts a flow that is still connecting at once", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: () => Effect.never, b: running })
      const stopping = yield* Effect.forkChild(Fiber.interrupt(service.fiber))
      yield* TestClock.adjust("200 millis")
      yield* Fiber.await(stopping)
      assert.includeMembers(service.log, ["a: interrupted", "b: end"])
    }))

  it.effect("takes shutdown.timeout.ms at most: what is not finished by then is interrupted, and that is said", () =>
    Effect.gen(function*() {
      const stuck: Behaviour = (handle) =>
        Effect.gen(function*() {
          handle.state.become("running", null, 0)
          yield* Deferred.succeed(handle.started, undefined)
          return yield* Effect.never
        })
      const service = yield* start({ a: stuck, b: running })
      const stopping = yield* Effect.forkChild(Fiber.interrupt(service.fiber))
      yield* TestClock.adjust("4900 millis")
      assert.notInclude(service.log, "a: interrupted")
      assert.strictEqual(service.state("a")?.state, "stopping")
      yield* TestClock.adjust("200 millis")
      yield* Fiber.await(stopping)
      assert.include(service.log, "a: interrupted")
      assert.match(service.lines.join("\n"), /not finished within shutdown\.timeout\.ms \(5000\)/)
    }))
})

describe("--until-caught-up", () => {
  const catchesUp = (after: number): Behaviour => (handle, nth) =>
    Effect.gen(function*() {
      yield* Effect.forkChild(
        Effect.andThen(
          Effect.sleep(after),
          Deferred.succeed(handle.caughtUp?.reached as Deferred.Deferred<void>, undefined)
        )
      )
      yield* running(handle, nth)
    })

  it.effect("ends when the last flow has caught up", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: catchesUp(1_000), b: catchesUp(20_000) }, { untilCaughtUp: true })
      yield* TestClock.adjust("19 seconds")
      assert.deepStrictEqual(service.log, ["a: start 1", "b: start 1"])
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(service.fiber)))
    }))

  it.effect("a flow that fails on the way is retried and may still catch up", () =>
    Effect.gen(function*() {
      const service = yield* start({
        a: (handle, nth) => nth === 1 ? failing("target down")(handle, nth) : catchesUp(1_000)(handle, nth),
        b: catchesUp(1_000)
      }, { untilCaughtUp: true })
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(service.fiber)))
    }))

  it.effect("fails when a flow has stopped for good: what it did not mirror must not look mirrored", () =>
    Effect.gen(function*() {
      const service = yield* start({ a: stopped("record 7 is bad"), b: catchesUp(1_000) }, { untilCaughtUp: true })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(errorOf(yield* Fiber.await(service.fiber)), ["flow a: record 7 is bad"])
    }))

  it.effect("fails where a topic had no place on the target, once the others have caught up", () =>
    Effect.gen(function*() {
      const missing: Behaviour = (handle, nth) => {
        if (handle.caughtUp !== null) handle.caughtUp.missed = [{ topic: "orders", reason: "the target has said no" }]
        return catchesUp(1_000)(handle, nth)
      }
      const service = yield* start({ a: missing, b: catchesUp(20_000) }, { untilCaughtUp: true })
      yield* TestClock.adjust("19 seconds")
      assert.deepStrictEqual(service.log, ["a: start 1", "b: start 1"])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(errorOf(yield* Fiber.await(service.fiber)), [
        "flow a: topic orders is not mirrored: the target has said no"
      ])
    }))
})
