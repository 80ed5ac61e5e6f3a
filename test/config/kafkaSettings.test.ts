/** Our list of Kafka's client settings against Kafka's own. */
import { assert, describe, it } from "@effect/vitest"
import Kafka from "@confluentinc/kafka-javascript"
import { Effect, Result } from "effect"
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
import { librdkafkaConf } from "../../src/group/librdkafkaConf.ts"
import { parseGroupSettings } from "../../src/group/settings.ts"
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

  it.effect("each are usable where they are taken: a number that a member of a group would break at is refused before", () =>
    Effect.gen(function*() {
      const names = [...KAFKA_SETTINGS.values()].filter(({ ignored, name, scopes, type }) =>
        type === "whole number" && scopes.includes("consumer") && ignored === null && !name.startsWith("s") &&
        whyUnsupported(name) === null
      ).map(({ name }) => name).concat("session.timeout.ms")
      assert.includeMembers(names, ["fetch.max.bytes", "fetch.min.bytes", "max.poll.interval.ms"])
      for (const name of names) {
        let taken = 0
        for (const value of [0, 1, 1_000, 3_600_001, 86_400_001, 2_147_483_648]) {
          const { config } = yield* load(minimal({}, { [`consumer.override.${name}`]: value }))
          if (config === null) continue
          taken++
          const settings = { "bootstrap.servers": "a:1", [name]: value }
          assert.isTrue(Result.isSuccess(yield* Effect.result(parseGroupSettings(settings))), `${name}: ${value}`)
          const conf = librdkafkaConf(settings, {
            groupId: "g",
            protocol: "classic",
            member: "lane",
            metadataRefreshMs: 5_000
          })
          assert.doesNotThrow(() => new Kafka.KafkaConsumer(conf as never, {}), `${name}: ${value}`)
        }
        assert.isAbove(taken, 0, name)
      }
    }))
})
