/** What the control tasks remember, on a cluster in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import { controlTopicName, makeControlLog } from "../../../src/mirror/control/controlLog.ts"
import { createTopics } from "../../../src/wire/messages/createTopics.ts"
import { deleteTopics } from "../../../src/wire/messages/deleteTopics.ts"
import { produce } from "../../../src/wire/messages/produce.ts"
import { ZERO_UUID } from "../../../src/wire/schema.ts"

const NAME = controlTopicName("f")
const CLUSTER_AUTHORIZATION_FAILED = 31

const opened = Effect.gen(function*() {
  const embedded = yield* makeEmbedded({})
  const lines: Array<string> = []
  const open = (name: string) =>
    Effect.gen(function*() {
      const target = yield* embedded.cluster(name)
      return yield* makeControlLog({ target, flow: "f", log: (_, message) => void lines.push(message) })
    })
  return { embedded, open, lines }
})

describe("the notes of a flow", () => {
  it.live("are read by every other process, and by the next one; a null takes a key out", () =>
    Effect.scoped(Effect.gen(function*() {
      const { open } = yield* opened
      const one = yield* open("one")
      const two = yield* open("two")
      assert.strictEqual((yield* one.read).size, 0)
      yield* one.write([["a", "1"], ["b", "2"]])
      assert.deepStrictEqual([...yield* two.read], [["a", "1"], ["b", "2"]])
      yield* two.write([["a", null], ["c", "3"]])
      assert.deepStrictEqual([...yield* one.read], [["b", "2"], ["c", "3"]])
      assert.deepStrictEqual([...yield* (yield* open("three")).read], [["b", "2"], ["c", "3"]])
    })))

  it.live("are in a compacted topic of the flow", () =>
    Effect.scoped(Effect.gen(function*() {
      const { embedded, open } = yield* opened
      yield* (yield* open("one")).write([["a", "1"]])
      assert.strictEqual(embedded.state.settings.get(`topic:${NAME}`)?.get("cleanup.policy"), "compact")
      assert.isTrue(embedded.state.topics.has(NAME))
    })))

  it.live("survive their topic: what is known goes into the one that is created anew", () =>
    Effect.scoped(Effect.gen(function*() {
      const { embedded, open } = yield* opened
      const one = yield* open("one")
      yield* one.write([["a", "1"]])
      yield* (yield* embedded.cluster("somebody")).request({ kind: "any" }, deleteTopics, {
        topics: [{ name: NAME, topicId: ZERO_UUID }],
        timeoutMs: 1_000
      })
      assert.deepStrictEqual([...yield* one.read], [["a", "1"]])
      assert.deepStrictEqual([...yield* (yield* open("two")).read], [["a", "1"]])
    })))

  it.live("live as long as the process where the topic may not be made, which is said once", () =>
    Effect.scoped(Effect.gen(function*() {
      const { embedded, lines, open } = yield* opened
      embedded.faults(({ apiKey }) =>
        apiKey === createTopics.key
          ? {
            kind: "answer",
            response: {
              topics: [{ name: NAME, errorCode: CLUSTER_AUTHORIZATION_FAILED, errorMessage: "no" }]
            }
          }
          : null
      )
      const one = yield* open("one")
      yield* one.read
      yield* one.write([["a", "1"]])
      assert.deepStrictEqual([...yield* one.read], [["a", "1"]])
      assert.match(one.problem() ?? "", /CLUSTER_AUTHORIZATION_FAILED/)
      assert.lengthOf(lines, 1)
      embedded.faults(() => null)
      assert.deepStrictEqual([...yield* one.read], [["a", "1"]])
      assert.isNull(one.problem())
      assert.deepStrictEqual([...yield* (yield* open("two")).read], [["a", "1"]])
    })))

  it.live("that the target does not take now are a failure, and not taken for written", () =>
    Effect.scoped(Effect.gen(function*() {
      const { embedded, open } = yield* opened
      const one = yield* open("one")
      yield* one.read
      embedded.faults(({ apiKey }) => apiKey === produce.key ? { kind: "loseRequest", then: "close" } : null)
      const fiber = yield* Effect.result(Effect.timeout(one.write([["a", "1"]]), "2 seconds"))
      assert.strictEqual(fiber._tag, "Failure")
      assert.strictEqual(one.known().size, 0)
    })))
})
