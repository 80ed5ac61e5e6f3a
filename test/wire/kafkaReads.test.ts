/**
 * Kafka's own generated classes read what we write, to the last byte, and write it again as we did: no mistake that our
 * encoder and decoder share, and none that a comparison of definitions does not show, gets past this.
 */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { spawnSync } from "node:child_process"
import { dirname, join } from "node:path"
import { requestHeaderVersion, responseHeaderVersion } from "../../src/wire/schema.ts"
import { clientsJar } from "../kit/kafkaMessages.ts"
import { messageValue } from "../kit/messageArbitraries.ts"
import { loadAllApis, versionsOf } from "../kit/messages.ts"
import { projectRoot } from "../kit/paths.ts"

const SEED = 20260102
const SAMPLES = 12

interface Case {
  readonly what: string
  readonly line: string
  readonly expected: string
}

const hex = (bytes: Buffer): string => bytes.length === 0 ? "-" : bytes.toString("hex")

const cases = async (): Promise<ReadonlyArray<Case>> =>
  (await loadAllApis()).flatMap((api) =>
    ([["request", api.request, requestHeaderVersion], ["response", api.response, responseHeaderVersion]] as const)
      .flatMap(([direction, message, headerVersion]) =>
        versionsOf(api).flatMap((version) =>
          fc.sample(messageValue(message.fields, version), { seed: SEED + version, numRuns: SAMPLES }).map(
            (value): Case => {
              const bytes = hex(Buffer.concat([...message.encode(version, value as never)]))
              return {
                what: `${message.name} v${version}`,
                line: `${api.key} ${direction} ${version} ${bytes}`,
                expected: `${headerVersion(api, version)} 0 ${bytes}`
              }
            }
          )
        )
      )
  )

const echo = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  const java = process.env["JAVA_HOME"] === undefined ? "java" : join(process.env["JAVA_HOME"], "bin/java")
  const run = spawnSync(
    java,
    ["-Xmx256m", "-cp", join(dirname(clientsJar()), "*"), join(projectRoot, "test/fixtures/EchoMessages.java")],
    { input: lines.join("\n"), encoding: "utf8", maxBuffer: 1 << 30 }
  )
  assert.strictEqual(run.status, 0, run.stderr)
  return run.stdout.trimEnd().split("\n")
}

describe("Kafka reads what we write", () => {
  it("every message in every version, and its header's version is ours", async () => {
    const all = await cases()
    const answers = echo(all.map((c) => c.line))
    assert.strictEqual(answers.length, all.length)
    const wrong = all.flatMap((c, i) =>
      answers[i] === c.expected ? [] : [{ what: c.what, sent: c.expected, got: answers[i] }]
    )
    assert.deepStrictEqual(wrong.slice(0, 5), [])
  })
})
