/** Who does the control tasks, on the cluster in this process and virtual time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import { leaderGroupId, makeLeadership } from "../../../src/mirror/control/leader.ts"
import { joinGroup } from "../../../src/wire/messages/joinGroup.ts"
import { heartbeat } from "../../../src/wire/messages/heartbeat.ts"
import { leaveGroup } from "../../../src/wire/messages/leaveGroup.ts"

const quiet = () => undefined

/** Lets time pass in small steps until the test holds; fails when it does not within `ms`. */
const passUntil = (test: () => boolean, ms: number, each: () => void = () => undefined) =>
  Effect.gen(function*() {
    for (let passed = 0; passed < ms; passed += 50) {
      if (test()) return passed
      yield* TestClock.adjust(50)
      each()
    }
    return yield* Effect.die(new Error(`not within ${ms} ms`))
  })

const started = Effect.gen(function*() {
  const embedded = yield* makeEmbedded({})
  const join = (name: string) =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const cluster = yield* Scope.provide(embedded.cluster(name), scope)
      const member = yield* Scope.provide(makeLeadership({ cluster, flow: "f", log: quiet }), scope)
      return { ...member, close: Scope.close(scope, Exit.void) }
    })
  return { embedded, join }
})

describe("the leader of a flow's control tasks", () => {
  it.effect("is one of its processes, and another as soon as it ends", () =>
    Effect.scoped(Effect.gen(function*() {
      const { join } = yield* started
      const all = [yield* join("a"), yield* join("b"), yield* join("c")]
      const leading = () => all.filter((one) => one.leads()).length
      const never2 = () => assert.isAtMost(leading(), 1)
      yield* passUntil(() => leading() === 1, 20_000, never2)
      const first = all.findIndex((one) => one.leads())
      yield* Effect.forkChild(all[first]!.close)
      yield* passUntil(() => !all[first]!.leads() && leading() === 1, 5_000, never2)
      for (const one of all) yield* Effect.forkChild(one.close)
      yield* TestClock.adjust(5_000)
    })))

  it.effect("lets go when it breaks, says so, and leads again later: the tasks are not left to nobody", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded({})
      const cluster = yield* embedded.cluster("a")
      const said: Array<string> = []
      let broken = false
      const member = yield* makeLeadership({
        cluster: {
          ...cluster,
          request: (...given) =>
            Effect.suspend(() => broken ? Effect.die(new TypeError("not a function")) : cluster.request(...given))
        },
        flow: "f",
        log: (level, line) => void said.push(`${level} ${line}`)
      })
      yield* passUntil(member.leads, 20_000)
      broken = true
      yield* passUntil(() => !member.leads(), 5_000)
      assert.include(said.at(-1), "error which process does the control tasks: TypeError: not a function")
      broken = false
      yield* passUntil(member.leads, 60_000)
    })))

  it.effect("that is cut off lets go before another leads, and does not lead again while that one does", () =>
    Effect.scoped(Effect.gen(function*() {
      const { embedded, join } = yield* started
      const one = yield* join("one")
      yield* passUntil(one.leads, 20_000)
      const two = yield* join("two")
      let cut = false
      const names = new Set([heartbeat.key, joinGroup.key, leaveGroup.key])
      embedded.faults((call) =>
        cut && call.client === "one" && names.has(call.apiKey) ? { kind: "loseRequest", then: "silence" } : null
      )
      yield* TestClock.adjust(3_000)
      assert.deepStrictEqual([one.leads(), two.leads()], [true, false])
      cut = true
      yield* passUntil(two.leads, 15_000, () => assert.isFalse(one.leads() && two.leads()))
      cut = false
      for (let n = 0; n < 400; n++) {
        yield* TestClock.adjust(50)
        assert.deepStrictEqual([one.leads(), two.leads()], [false, true])
      }
      for (const member of [one, two]) yield* Effect.forkChild(member.close)
      yield* TestClock.adjust(5_000)
    })))

  it.effect("runs its work while it leads, interrupts it when it no longer does, and begins again when it does anew", () =>
    Effect.scoped(Effect.gen(function*() {
      const { embedded, join } = yield* started
      const events: Array<string> = []
      const member = yield* join("one")
      const work = Effect.onInterrupt(
        Effect.andThen(Effect.sync(() => events.push("begins")), Effect.never),
        () => Effect.sync(() => events.push("interrupted"))
      )
      yield* Effect.forkChild(member.whileLeading(work))
      yield* passUntil(() => events.length === 1, 20_000)
      embedded.faults((call) =>
        call.apiKey === heartbeat.key ? { kind: "answer", response: { throttleTimeMs: 0, errorCode: 25 } } : null
      )
      yield* passUntil(() => events.length >= 2, 20_000)
      embedded.faults(() => null)
      yield* passUntil(() => events.length >= 3, 20_000)
      assert.deepStrictEqual(events.slice(0, 3), ["begins", "interrupted", "begins"])
      assert.strictEqual(yield* member.whileLeading(Effect.succeed("done")), "done")
      yield* Effect.forkChild(member.close)
      yield* TestClock.adjust(5_000)
    })))

  it("has a group that no user's group is called like", () => {
    assert.strictEqual(leaderGroupId("east->west"), "__onceover_control_east->west")
  })
})
