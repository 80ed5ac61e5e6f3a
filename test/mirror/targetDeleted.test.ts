/** Topics of the target that somebody deletes while a flow runs into them, between two clusters of this process. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Embedded } from "../../src/embedded/embedded.ts"
import { deleteTopics } from "../../src/wire/messages/deleteTopics.ts"
import { ZERO_UUID } from "../../src/wire/schema.ts"
import { makeFlowWorld } from "./flowWorld.ts"

const LONG = { timeout: 90_000 }

const remove = (embedded: Embedded, name: string) =>
  Effect.gen(function*() {
    const admin = yield* embedded.cluster("admin")
    const { responses } = yield* admin.request({ kind: "controller" }, deleteTopics, {
      topics: [{ name, topicId: ZERO_UUID }],
      timeoutMs: 1_000
    })
    assert.strictEqual(responses[0]?.errorCode, 0)
  })

/** A transform that takes no record. */
const refusing = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "onceover-target-"))
    writeFileSync(
      join(folder, "no.mjs"),
      "export const transform = () => { throw new TypeError(\"no record, please\") }"
    )
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A partition that takes nothing is left out after a third of it. */
const QUICK = { "producer.override.transaction.timeout.ms": 3_000 }

describe("a topic of the target that is deleted while the flow runs", () => {
  for (
    const [guarantee, transactionVersion] of [["exactly-once", 2], ["exactly-once", 1], ["at-least-once", 2]] as const
  ) {
    it.live(
      `is made again where a transform has named it, and what comes then is in it (${guarantee}, transactions v${transactionVersion})`,
      () =>
        Effect.gen(function*() {
          const world = yield* makeFlowWorld(
            {
              "delivery.guarantee": guarantee,
              transforms: "route",
              "transforms.route.type": "RegexRouter",
              "transforms.route.regex": "east\\.orders",
              "transforms.route.replacement": "elsewhere",
              ...QUICK
            },
            {},
            { transactionVersion }
          )
          world.east.createTopic("orders", { partitions: 2 })
          world.append("orders", 0, "a")
          yield* world.run
          yield* world.until("the first record", () => world.values("elsewhere").length === 1)
          yield* remove(world.west, "elsewhere")
          world.append("orders", 0, "b", "c")
          world.append("orders", 1, "d")
          yield* world.until("the others", () => world.values("elsewhere").length === 3)
          assert.deepStrictEqual(world.values("elsewhere"), ["b", "c", "d"])
          assert.strictEqual(world.west.state.topics.get("elsewhere")?.partitions.length, 2)
          assert.isTrue(world.lines.some((line) => line.startsWith("Warn the target has no topic elsewhere now")))
        }),
      LONG
    )
  }

  it.live(
    "is made again where it is the dead-letter topic, and the flow goes on",
    () =>
      Effect.gen(function*() {
        const world = yield* makeFlowWorld({
          transforms: "strict",
          "transforms.strict.type": "module",
          "transforms.strict.path": join(yield* refusing, "no.mjs"),
          "errors.deadletterqueue.topic.name": "letters",
          "errors.deadletterqueue.topic.replication.factor": 1,
          ...QUICK
        })
        world.east.createTopic("orders")
        world.append("orders", 0, "a")
        yield* world.run
        yield* world.until("the first letter", () => world.values("letters").length === 1)
        yield* remove(world.west, "letters")
        world.append("orders", 0, "b", "c")
        yield* world.until("the others", () => world.values("letters").length === 2)
        assert.deepStrictEqual(world.values("letters"), ["b", "c"])
      }),
    LONG
  )
})

describe("a topic of the target that is made again while the flow runs", () => {
  for (const [mode, guarantee] of [["share", "exactly-once"], ["consumer", "at-least-once"]] as const) {
    it.live(
      `is said to be a gap, and is mirrored into (${mode}, ${guarantee})`,
      () =>
        Effect.gen(function*() {
          const world = yield* makeFlowWorld({ "group.protocol": mode, "delivery.guarantee": guarantee, ...QUICK })
          world.east.createTopic("orders", { partitions: 2 })
          world.append("orders", 0, "a")
          yield* world.run
          yield* world.until("the first record", () => world.values("east.orders").length === 1)
          yield* remove(world.west, "east.orders")
          world.west.createTopic("east.orders")
          world.append("orders", 0, "b")
          world.append("orders", 1, "c")
          yield* world.until("the others", () => world.values("east.orders").length === 2)
          assert.deepStrictEqual(world.values("east.orders"), ["b", "c"])
          const says = (line: string) =>
            line.startsWith("Error topic east.orders of the target was deleted there and made again")
          yield* world.until("the gap is said", () => world.lines.some(says))
          world.append("orders", 0, "d")
          yield* world.until("what comes then", () => world.values("east.orders").length === 3)
          assert.strictEqual(world.lines.filter(says).length, 1)
          assert.deepStrictEqual(world.lines.filter((line) => line.includes("the flow failed")), [])
        }),
      LONG
    )
  }
})
