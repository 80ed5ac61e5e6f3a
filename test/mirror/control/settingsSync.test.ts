/** Settings brought to the target, and topics deleted with their sources, on clusters of this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Embedded, makeEmbedded } from "../../../src/embedded/embedded.ts"
import { makeControlLog } from "../../../src/mirror/control/controlLog.ts"
import { makeDeletions } from "../../../src/mirror/control/deletions.ts"
import { noteOf } from "../../../src/mirror/control/identities.ts"
import { settingRules } from "../../../src/mirror/control/settings.ts"
import { syncSettings } from "../../../src/mirror/control/settingsSync.ts"
import type { MirroredTopic } from "../../../src/mirror/control/topics.ts"
import { makeNaming } from "../../../src/mirror/naming.ts"
import type { Cluster } from "../../../src/wire/cluster.ts"
import { incrementalAlterConfigs } from "../../../src/wire/messages/incrementalAlterConfigs.ts"
import { metadata } from "../../../src/wire/messages/metadata.ts"
import type { Encoded } from "../../../src/wire/schema.ts"

const two = Effect.gen(function*() {
  const east = yield* makeEmbedded({ clusterId: "east-000000000000000000", seed: 1 })
  const west = yield* makeEmbedded({ clusterId: "west-000000000000000000", seed: 2 })
  return { east, west, source: yield* east.cluster("source"), target: yield* west.cluster("target") }
})

const topic = (name: string): MirroredTopic => ({
  source: name,
  sourceId: "",
  target: `east.${name}`,
  partitions: 1
})

const set = (cluster: Cluster, name: string, configs: Readonly<Record<string, string>>) =>
  cluster.request({ kind: "any" }, incrementalAlterConfigs, {
    resources: [{
      resourceType: 2,
      resourceName: name,
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, configOperation: 0, value }))
    }],
    validateOnly: false
  })
const settings = (cluster: Embedded, name: string) =>
  Object.fromEntries(cluster.state.settings.get(`topic:${name}`) ?? [])

const rules = settingRules({ settingsExclude: [], settingsPinned: new Map(), useDefaultsFrom: "target" })

describe("settings", () => {
  it.live("that differ are changed, and nothing is asked for when none does", () =>
    Effect.scoped(Effect.gen(function*() {
      const { east, source, target, west } = yield* two
      for (const name of ["a", "b"]) {
        east.createTopic(name)
        west.createTopic(`east.${name}`)
      }
      yield* set(source, "a", { "retention.ms": "1000" })
      yield* set(target, "east.b", { "segment.bytes": "1048576" })
      const changes: Array<string> = []
      let alterations = 0
      west.faults(({ apiKey }) => {
        if (apiKey === incrementalAlterConfigs.key) alterations++
        return null
      })
      const pass = syncSettings({
        source,
        targetAdmin: target,
        topics: () => [topic("a"), topic("b")],
        rules,
        onChange: (change) => void changes.push(change)
      })
      assert.deepInclude(yield* pass, { changed: 2, problems: [] })
      assert.deepStrictEqual([settings(west, "east.a"), settings(west, "east.b")], [{ "retention.ms": "1000" }, {}])
      assert.lengthOf(changes, 2)
      assert.deepInclude(yield* pass, { changed: 0, problems: [] })
      assert.strictEqual(alterations, 1)
    })))

  it.live("that the target does not take are named one by one; the topic's others and other topics are set", () =>
    Effect.scoped(Effect.gen(function*() {
      const { east, source, target, west } = yield* two
      for (const name of ["a", "b", "only-here"]) east.createTopic(name)
      for (const name of ["a", "b"]) west.createTopic(`east.${name}`)
      yield* set(source, "a", { "retention.ms": "1000", "segment.bytes": "1048576" })
      yield* set(source, "b", { "retention.ms": "2000" })
      // A target whose policy refuses one setting of one topic, as a whole request for that topic.
      west.faults(({ apiKey, request }) => {
        if (apiKey !== incrementalAlterConfigs.key) return null
        const { resources } = request as Encoded<typeof incrementalAlterConfigs.request.fields>
        const refused = (name: string) =>
          resources.find((one) => one.resourceName === name)?.configs.some((c) => c.name === "segment.bytes") === true
        if (!resources.some(({ resourceName }) => refused(resourceName))) return null
        for (const { configs, resourceName } of resources) {
          if (refused(resourceName)) continue
          const own = west.state.settings.get(`topic:${resourceName}`) ?? new Map<string, string>()
          west.state.settings.set(`topic:${resourceName}`, own)
          for (const { name, value } of configs) own.set(name, value ?? "")
        }
        return {
          kind: "answer",
          response: {
            responses: resources.map(({ resourceName, resourceType }) => ({
              errorCode: refused(resourceName) ? 44 : 0,
              errorMessage: refused(resourceName) ? "our policy" : null,
              resourceType,
              resourceName
            }))
          }
        }
      })
      const { changed, problems } = yield* syncSettings({
        source,
        targetAdmin: target,
        topics: () => [topic("a"), topic("b"), topic("only-here")],
        rules,
        onChange: () => undefined
      })
      assert.strictEqual(changed, 2)
      assert.deepStrictEqual([settings(west, "east.a"), settings(west, "east.b")], [
        { "retention.ms": "1000" },
        { "retention.ms": "2000" }
      ])
      assert.lengthOf(problems, 1)
      assert.match(
        problems[0] ?? "",
        /topic east\.a: segment\.bytes cannot be set to 1048576: .*POLICY_VIOLATION.*our policy/
      )
    })))
})

describe("deletions", () => {
  const naming = makeNaming({
    sourceAlias: "east",
    targetAlias: "west",
    aliases: new Set(["east", "west"]),
    policy: "default",
    separator: ".",
    mapping: new Map(),
    include: [".*"],
    exclude: ["kept"]
  })

  const deletions = (topics: ReadonlyArray<MirroredTopic> = []) =>
    Effect.gen(function*() {
      const clusters = yield* two
      const { source, target } = clusters
      const notes = yield* makeControlLog({ target, flow: "f", log: () => undefined })
      const pass = makeDeletions({
        source,
        targetAdmin: target,
        naming,
        notes,
        topics: () => topics,
        onDeleted: () => undefined
      })
      return { ...clusters, notes, pass }
    })

  it.live("take what was noted and is gone, when it is gone twice; never what is excluded now, or in use, or foreign", () =>
    Effect.scoped(Effect.gen(function*() {
      const { east, notes, pass, west } = yield* deletions([{ ...topic("alive"), target: "east.shared" }])
      east.createTopic("alive")
      for (const name of ["east.gone", "east.gone.2", "east.kept", "east.foreign", "east.shared"]) {
        west.createTopic(name)
      }
      yield* notes.write([
        noteOf("gone", "1", ""),
        noteOf("gone", "2", ".2"),
        noteOf("kept", "3", ""),
        noteOf("alive", "4", ""),
        noteOf("shared", "5", "")
      ])
      assert.strictEqual((yield* pass).changed, 0)
      assert.strictEqual((yield* pass).changed, 2)
      const left = [...west.state.topics.keys()].filter((name) => name.startsWith("east.")).toSorted()
      assert.deepStrictEqual(left, ["east.foreign", "east.kept", "east.shared"])
      assert.strictEqual((yield* pass).changed, 0)
    })))

  it.live("do not take a topic for gone that the mirror may not see any more", () =>
    Effect.scoped(Effect.gen(function*() {
      const { east, notes, pass, west } = yield* deletions()
      west.createTopic("east.hidden")
      yield* notes.write([noteOf("hidden", "1", "")])
      const TOPIC_AUTHORIZATION_FAILED = 29
      east.faults(({ apiKey, request }) =>
        apiKey === metadata.key && (request as { readonly topics: ReadonlyArray<unknown> | null }).topics?.length === 1
          ? {
            kind: "answer",
            response: {
              brokers: [],
              clusterId: "east-000000000000000000",
              controllerId: 1,
              topics: [{ errorCode: TOPIC_AUTHORIZATION_FAILED, name: "hidden", partitions: [] }]
            }
          }
          : null
      )
      for (let n = 0; n < 3; n++) assert.strictEqual((yield* pass).changed, 0)
      assert.isTrue(west.state.topics.has("east.hidden"))
    })))
})
