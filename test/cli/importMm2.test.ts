/** `import-mm2` as a process, and what `verify` says while it works. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { parse } from "yaml"
import { renderVerify } from "../../src/cli/verifyCommand.ts"
import { openScreen } from "../../src/cli/verifyScreen.ts"
import { writeImport } from "../../src/cli/writeImport.ts"
import type { VerifiedPartition } from "../../src/mirror/verify/report.ts"
import { runCli } from "../kit/cli.ts"
import { BASE } from "../kit/mm2File.ts"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "onceover-import-"))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

describe("onceover import-mm2", () => {
  it("prints a configuration that loads, and ends with 2 and the reasons where a setting cannot be had", async () => {
    const right = file("mm2.properties", `${BASE}tasks.max = 3\n`)
    const wrong = file("wrong.properties", `${BASE}tasks.max = many\n`)
    const foreign = file("foreign.properties", `${BASE}topic.filter.class = com.example.Mine\n`)
    const [good, bad, java, ours] = await Promise.all(
      [right, wrong, foreign, file("flows.yaml", "clusters: {}\n")].map((path) => runCli(["import-mm2", path]))
    )
    assert.deepStrictEqual([good?.code, good?.err], [0, ""])
    assert.strictEqual((parse(good?.out ?? "") as { flows: [{ "tasks.max": number }] }).flows[0]["tasks.max"], 3)
    for (
      const [end, says] of [[bad, /:5: tasks\.max is "many"/], [java, /:5: .*no Java class/], [
        ours,
        /is no file of/
      ]] as const
    ) {
      assert.deepStrictEqual([end?.code, end?.out], [2, ""])
      assert.match(end?.err ?? "", says)
    }
  })

  it("--out never writes over what says something else, and keeps secrets from other eyes", () => {
    const path = join(folder, "out.yaml")
    assert.isNull(writeImport(path, { yaml: "a: 1\n", secrets: true }))
    assert.strictEqual(statSync(path).mode & 0o777, 0o600)
    assert.isNull(writeImport(path, { yaml: "a: 1\n", secrets: true }))
    assert.match(writeImport(path, { yaml: "a: 2\n", secrets: true }) ?? "", /is there already/)
    assert.strictEqual(readFileSync(path, "utf8"), "a: 1\n")
    assert.match(writeImport(join(folder, "none", "x.yaml"), { yaml: "", secrets: false }) ?? "", /cannot be written/)
    assert.isFalse(existsSync(join(folder, "none")))
  })
})

describe("onceover verify", () => {
  it("says without a terminal how far it is, how fast, and what is left, a line every ten seconds", async () => {
    let now = 0
    const said: Array<string> = []
    const screen = await openScreen(false, (text) => void said.push(text), () => now)
    screen.show({ done: 1, total: 1_000, waiting: null })
    now = 5_000
    screen.show({ done: 500, total: 1_000, waiting: null })
    now = 10_000
    screen.show({ done: 1_000, total: 5_000, waiting: null })
    now = 20_000
    screen.show({ done: 1_000, total: 5_000, waiting: "the mirror has 3 offsets to go" })
    screen.end()
    assert.deepStrictEqual(said, [
      "onceover: 1,000 of 5,000 offsets, 100/s, 40 s left\n",
      "onceover: waiting: the mirror has 3 offsets to go\n"
    ])
  })

  it("prints each partition, the offsets that differ, and the sums", () => {
    const partition: VerifiedPartition = {
      sourceTopics: ["t"],
      targetTopic: "east.t",
      partition: 0,
      source: { from: 0, to: 20, records: 20 },
      target: { from: 0, to: 19, records: 19 },
      equal: false,
      lost: 14,
      doubled: 1,
      altered: 1,
      foreign: 0,
      explained: { removedOnSource: 2, removedOnTarget: 0, notYetMirrored: 0, filtered: 0 },
      differences: [
        ...Array.from(
          { length: 14 },
          (_, n) => ({ kind: "lost", sourceOffset: n, targetOffset: null, parts: [] }) as const
        ),
        { kind: "doubled", sourceOffset: null, targetOffset: 18, parts: [] },
        { kind: "altered", sourceOffset: 15, targetOffset: 3, parts: ["value"] }
      ],
      notes: ["a note"],
      problem: null
    }
    const flow = {
      name: "f",
      source: "east",
      target: "west",
      equal: false,
      notes: [],
      problem: null,
      partitions: [partition]
    }
    const text = renderVerify({ equal: false, flows: [flow] })
    for (
      const line of [
        /^f {2}east -> west {2}is different$/m,
        /^ {2}t-0 .* 20 .* 19 .* 14 .* 1 .* 1 .* 0 {2}DIFFERENT$/m,
        /^ {4}lost {5}source offset 9$/m,
        /^ {4}doubled {2}target offset 18$/m,
        /^ {4}altered {2}source offset 15, target offset 3: value$/m,
        /^ {4}and 4 more/m,
        /^ {4}a note$/m,
        /^ {4}2 records are on the target only: the source has removed them$/m,
        /^NOT equal\. 20 records: 14 lost, 1 doubled, 1 altered, 0 on the target only\.$/m
      ]
    ) assert.match(text, line)
    assert.notMatch(text, /source offset 10$/m)
  })
})
