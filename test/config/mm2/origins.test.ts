import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { mm2Origins } from "../../../src/config/mm2/origins.ts"
import { BASE } from "../../kit/mm2File.ts"

const originsOf = (text: string, name = "mm2.properties") =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "onceover-origins-"))),
    (folder) => {
      writeFileSync(join(folder, name), text)
      return mm2Origins(join(folder, name))
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

describe("where MirrorMaker keeps its positions", () => {
  it.effect("is its default, or what the file says, behind the target or at the top; for flows that are on", () =>
    Effect.gen(function*() {
      const flow = { source: "east", target: "west" }
      assert.deepStrictEqual(yield* originsOf(`${BASE}west->east.enabled = false\n`), [
        { ...flow, offsetsTopic: "mm2-offsets.east.internal", workerGroup: "east-mm2" }
      ])
      assert.deepStrictEqual(yield* originsOf(`${BASE}offset.storage.topic = o\nwest.group.id = g\n`), [
        { ...flow, offsetsTopic: "o", workerGroup: "g" }
      ])
      assert.deepStrictEqual(
        (yield* originsOf(`${BASE}offset.storage.topic = o\nwest.offset.storage.topic = w\n`))[0]?.offsetsTopic,
        "w"
      )
    }))

  it.effect("is nowhere for a file that is not MirrorMaker's, or is not there", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* originsOf("clusters: {}\n", "flows.yaml"), [])
      assert.deepStrictEqual(yield* mm2Origins("/nowhere/mm2.properties"), [])
    }))
})
