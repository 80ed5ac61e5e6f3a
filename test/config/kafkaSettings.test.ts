/** Our list of Kafka's client settings against Kafka's own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { dirname, join } from "node:path"
import {
  KAFKA_SETTINGS,
  LIBRDKAFKA,
  RESERVED,
  type Scope,
  whyUnsupported,
  WORDS
} from "../../src/config/kafkaSettings.ts"
import { isSecretSetting } from "../../src/wire/settings.ts"
import { CLUSTERS, load, minimal } from "../kit/configFile.ts"
import { clientsJar } from "../kit/kafkaMessages.ts"
import { projectRoot } from "../kit/paths.ts"

const OUR_TYPE: Readonly<Record<string, string>> = {
  STRING: "text",
  LIST: "text",
  CLASS: "text",
  PASSWORD: "text",
  INT: "whole number",
  LONG: "whole number",
  SHORT: "whole number",
  DOUBLE: "number",
  BOOLEAN: "boolean"
}

const kafkaSays = (): ReadonlyArray<readonly [client: Scope, name: string, type: string]> => {
  const java = process.env["JAVA_HOME"] === undefined ? "java" : join(process.env["JAVA_HOME"], "bin/java")
  const run = spawnSync(java, [
    "-Xmx256m",
    "-cp",
    join(dirname(clientsJar()), "*"),
    join(projectRoot, "test/fixtures/ClientSettings.java")
  ], { encoding: "utf8" })
  assert.strictEqual(run.status, 0, run.stderr)
  return run.stdout.trimEnd().split("\n").map((line) => line.split(" ") as unknown as readonly [Scope, string, string])
}

describe("Kafka's client settings", () => {
  it("are all known here, for their clients and with their types", () => {
    const said = kafkaSays()
    assert.isAbove(said.length, 300)
    const missing = said.filter(([client, name, type]) => {
      const ours = KAFKA_SETTINGS.get(name)
      return ours === undefined || !ours.scopes.includes(client) || ours.type !== OUR_TYPE[type]
    })
    assert.deepStrictEqual(missing, [])
    const secrets = said.filter(([, name, type]) =>
      type === "PASSWORD" && !isSecretSetting(name) && !/certificate/.test(name)
    )
    assert.deepStrictEqual(secrets, [])
  })

  it("that have words, another name or a ban here exist", () => {
    for (const name of [...WORDS.keys(), ...LIBRDKAFKA.values(), ...RESERVED.keys()]) {
      assert.isTrue(KAFKA_SETTINGS.has(name), name)
    }
  })

  it.effect("each refuse a value of another kind", () =>
    Effect.gen(function*() {
      for (const setting of KAFKA_SETTINGS.values()) {
        if (
          RESERVED.has(setting.name) || whyUnsupported(setting.name) !== null ||
          ["group.protocol", "auto.offset.reset", "isolation.level"].includes(setting.name)
        ) continue
        const values = [
          { a: 1 },
          [["x"]],
          ...(setting.type === "text" ? [] : ["nonsense", "", "1 2"]),
          ...(setting.type === "whole number" ? [1.5, -7] : [])
        ]
        const wrong = Object.fromEntries(
          values.map((value, i) => [`x${i}`, { "bootstrap.servers": "a:1", [setting.name]: value }])
        )
        const { problems } = yield* load(minimal({ clusters: { ...CLUSTERS, ...wrong } }))
        assert.deepStrictEqual(
          problems.map((p) => p.path),
          Object.keys(wrong).map((alias) => `clusters.${alias}.${setting.name}`)
        )
      }
    }))
})
