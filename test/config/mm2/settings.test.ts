/**
 * Our table of MirrorMaker 2's settings against MirrorMaker's own: test/fixtures/mirrorMakerSettings.tsv is what its
 * ConfigDefs say, printed by MirrorMakerSettings.java beside it.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { KAFKA_SETTINGS } from "../../../src/config/kafkaSettings.ts"
import { MM2_SETTINGS, treatmentOf, WORKER_SETTINGS } from "../../../src/config/mm2/settings.ts"
import { importLines } from "../../kit/mm2File.ts"
import { projectRoot } from "../../kit/paths.ts"

interface Defined {
  readonly part: string
  readonly name: string
  readonly fallback: string
}

const defined: ReadonlyArray<Defined> = readFileSync(join(projectRoot, "test/fixtures/mirrorMakerSettings.tsv"), "utf8")
  .trimEnd().split("\n").map((line) => {
    const [part = "", name = "", , fallback = ""] = line.split("\t")
    return { part, name, fallback: fallback.replace(/^\[(.*)\]$/, "$1").replace(/^\((null|required)\)$/, "x") }
  })
const uniqueNames = (parts: ReadonlyArray<string>): ReadonlyArray<Defined> => {
  const of = defined.filter(({ part }) => parts.includes(part))
  return of.filter(({ name }, i) => i === of.findIndex((other) => other.name === name))
}

/** They say what the file is about; the other tests cannot do without them. */
const STRUCTURE = ["clusters", "enabled", "name", "connector.class", "source.cluster.alias", "target.cluster.alias"]

describe("MirrorMaker 2's settings", () => {
  it("are all known here: mapped, not needed with a reason, or refused", () => {
    assert.isAbove(defined.length, 600)
    const unknown = defined.filter(({ name }) =>
      treatmentOf(name) === undefined && !KAFKA_SETTINGS.has(name) && !name.startsWith("config.providers")
    )
    assert.deepStrictEqual(unknown, [])
  })

  it("of the connectors each come out of an import as an entry, a note or a problem, for one flow and for all", () => {
    const parts = ["source", "checkpoint", "heartbeat", "topic filter", "group filter", "property filter", "connector"]
    const settings = uniqueNames(parts).filter(({ name }) => !STRUCTURE.includes(name))
    assert.isAbove(settings.length, 100)
    for (const { fallback, name } of settings) {
      for (const key of [name, `east->west.${name}`]) {
        assert.isTrue(importLines(`${key} = ${fallback || "x"}`).named.has(key), key)
      }
    }
  })

  it("of the worker and the driver each come out as an entry, a note or a problem, at the top and behind the target", () => {
    const settings = uniqueNames(["worker", "driver", "client"]).filter(({ name }) => !STRUCTURE.includes(name))
    assert.isAbove(settings.length, 120)
    for (const { fallback, name } of settings) {
      for (const key of [name, `west.${name}`]) {
        const { named } = importLines(`${key} = ${fallback || "x"}`)
        // The base has its own bootstrap.servers behind each alias, and those win.
        assert.isTrue(named.has(key) || key === "bootstrap.servers", key)
      }
    }
  })

  it("with their default values are no reason to refuse a file", () => {
    const lines = uniqueNames(["source", "checkpoint", "heartbeat", "property filter", "worker"])
      .filter(({ fallback, name }) => fallback !== "x" && fallback !== "" && !STRUCTURE.includes(name))
      .filter(({ name }) => !/^sasl\.(kerberos|oauthbearer\.assertion|oauthbearer\.jwt)/.test(name))
      .map(({ fallback, name }) => `${name} = ${fallback.replaceAll("\\", "\\\\")}`)
    assert.deepStrictEqual(importLines(...lines).problems, [])
  })

  it("that the table has exist, or did before MirrorMaker 4", () => {
    const before = ["topics.blacklist", "groups.blacklist", "config.properties.blacklist"]
    const gone = [...before, "add.source.alias.to.metrics", "use.incremental.alter.configs"]
    const known = new Set([...defined.map(({ name }) => name), ...gone])
    assert.deepStrictEqual([...MM2_SETTINGS.keys(), ...WORKER_SETTINGS].filter((name) => !known.has(name)), [])
  })
})
