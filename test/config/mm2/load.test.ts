/** A MirrorMaker 2 file given where a configuration is wanted. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { importFile } from "../../../src/config/mm2/load.ts"
import { flowOf, loadText } from "../../kit/configFile.ts"
import { BASE } from "../../kit/mm2File.ts"

const load = (lines: string, more: Parameters<typeof loadText>[1] = {}) =>
  loadText(BASE + lines, { name: "mm2.properties", ...more })

describe("a MirrorMaker 2 file as the configuration", () => {
  it.effect("is resolved as what it is imported to; a consumer group reads unless the file says otherwise", () =>
    Effect.gen(function*() {
      const loaded = yield* load("topics = a, b.*\nreplication.factor = 3\nwest.producer.max.request.size = 2000000\n")
      const flow = flowOf(loaded)
      assert.deepStrictEqual(flow.topics, ["a", "b.*"])
      assert.deepStrictEqual([flow.name, flow.groupId], ["east->west", "onceover-east-to-west"])
      assert.strictEqual(flow.groupProtocol.value, "consumer")
      assert.strictEqual(flow.replicationFactor, 3)
      assert.deepStrictEqual(flow.producerOverrides, { "max.request.size": "2000000" })
      for (
        const line of [
          "group.protocol = share",
          "east->west.group.protocol = share",
          "consumer.group.protocol = share",
          "east->west.consumer.override.group.protocol = share"
        ]
      ) assert.strictEqual(flowOf(yield* load(`${line}\n`)).groupProtocol.value, "share", line)
    }))

  it.effect("has its references replaced", () =>
    Effect.gen(function*() {
      const { config } = yield* load(
        "config.providers = f\nconfig.providers.f.class = org.apache.kafka.common.config.provider.FileConfigProvider\n" +
          "east.sasl.jaas.config = ${f:secrets.properties:jaas}\neast.sasl.mechanism = PLAIN\n" +
          "east.security.protocol = SASL_PLAINTEXT\nwest.client.rack = ${env:RACK}\n",
        {
          env: { RACK: "r1" },
          files: {
            "secrets.properties":
              "jaas=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"p\";\n"
          }
        }
      )
      assert.include(config?.clusters.get("east")?.settings["sasl.jaas.config"], "username=\"u\"")
      assert.strictEqual(config?.clusters.get("west")?.settings["client.rack"], "r1")
    }))

  it.effect("that is wrong is told in its own names and lines", () =>
    Effect.gen(function*() {
      const { problems } = yield* load(
        "tasks.max = many\neast->west.topics = [\nwest.security.protocol = TLS\neast.sasl.jaas.config = ${env:NOT_SET}\n"
      )
      assert.deepStrictEqual(problems.map(({ line, path }) => [line, path]), [
        [5, "tasks.max"],
        [6, "east->west.topics"],
        [7, "west.security.protocol"],
        [8, "east.sasl.jaas.config"]
      ])
      const missing = yield* loadText(BASE.replace(/^west\.boot.*\n/m, ""), { name: "mm2.properties" })
      assert.match(missing.lines.join(), /^west\.bootstrap\.servers is missing/)
    }))

  it.effect("is told in full, what MirrorMaker's names are wrong for and what its values are, each setting once", () =>
    Effect.gen(function*() {
      const lines = "replication.policy.class = com.example.Mine\nwest.security.protocol = SASL_PLAINTEXT\n" +
        "west.sasl.mechanism = GSSAPI\neast.sasl.jaas.config = ${v:a:b}\ntasks.max = many\neast.bootstrap.server = e:1\n" +
        "config.providers = v\nconfig.providers.v.class = com.example.Vault\n"
      const wanted = [
        [4, "replication.policy.class"],
        [6, "west.sasl.mechanism"],
        [7, "east.sasl.jaas.config"],
        [8, "tasks.max"],
        [9, "east.bootstrap.server"]
      ]
      // That east has no servers now is the misspelt name's doing.
      const text = BASE.replace(/^east\.boot.*\n/m, "") + lines
      const { problems } = yield* loadText(text, { name: "mm2.properties" })
      assert.deepStrictEqual(problems.map(({ line, path }) => [line, path]), wanted)

      const folder = mkdtempSync(join(tmpdir(), "onceover-mm2-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true, force: true })))
      const path = join(folder, "mm2.properties")
      writeFileSync(path, text)
      const refused = yield* Effect.flip(importFile(path))
      assert.deepStrictEqual(refused.problems.map(({ line, path: at }) => [line, at]), wanted)
    }).pipe(Effect.scoped))

  it.effect("says in the log how many of its settings have no place", () =>
    Effect.gen(function*() {
      const { config } = yield* load("listeners = http://:1\nerrors.tolerance = all\n")
      assert.strictEqual(config?.warnings.length, 3)
      assert.match(config?.warnings[0] ?? "", /^errors\.tolerance is not followed: /)
      assert.match(config?.warnings[2] ?? "", /^1 settings of MirrorMaker 2 .*import-mm2/)
    }))

  it.effect("says where new topics may have fewer replicas than MirrorMaker gives them, and not where the file decides", () =>
    Effect.gen(function*() {
      const BOTH = "west->east.enabled = true\n"
      const said = (lines: string) =>
        Effect.map(load(lines), ({ config }) => config?.warnings.filter((line) => /replication\.factor/.test(line)))
      assert.match((yield* said(BOTH))?.join() ?? "", /^east->west, west->east: .*default\.replication\.factor.* 2$/)
      assert.match((yield* said(`${BOTH}east->west.replication.factor = 2\n`))?.join() ?? "", /^west->east: /)
      for (const factor of ["2", "-1"]) assert.deepStrictEqual(yield* said(`replication.factor = ${factor}\n`), [])
    }))
})
