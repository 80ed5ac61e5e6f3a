/** Kafka's own Java tools on the embedded cluster. In this folder because they need Kafka's jars. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { makeEmbedded } from "../../src/embedded/embedded.ts"
import { serve } from "../../src/embedded/server.ts"
import { load, makeRecords } from "../kit/loader.ts"
import { projectRoot, versions } from "../kit/paths.ts"
import { within } from "../kit/until.ts"

const libs = join(projectRoot, ".tools/kafka", versions.kafka, "libs/*")

/** Runs one of the tools; gives what it printed. Not the synchronous way: the broker runs in this process. */
const tool = async (name: string, args: ReadonlyArray<string>, input = ""): Promise<string> => {
  const java = process.env["JAVA_HOME"] ? join(process.env["JAVA_HOME"], "bin/java") : "java"
  const child = spawn(java, [
    "-Xmx200m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-cp",
    libs,
    `org.apache.kafka.tools.${name}`,
    ...args
  ])
  const out: Array<string> = []
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => out.push(chunk.toString()))
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject)
    child.once("close", resolve)
  })
  child.stdin.on("error", () => undefined)
  child.stdin.end(input)
  try {
    await within(ended, { timeoutMs: 120_000, what: `${name} to end; it has said\n${out.join("")}` })
  } finally {
    child.kill("SIGKILL")
  }
  return out.join("")
}

const lines = (printed: string, pattern: RegExp): ReadonlyArray<string> =>
  printed.split("\n").filter((line) => pattern.test(line)).sort()

describe("Kafka's Java tools on the embedded cluster", () => {
  it.live("make a topic, fill it, and read it back as a consumer and as a share group", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded({ brokers: 2 })
      const { bootstrap } = yield* serve(embedded)
      const at = ["--bootstrap-server", bootstrap]
      yield* Effect.promise(async () => {
        assert.match(
          await tool("TopicCommand", [...at, "--create", "--topic", "t", "--partitions", "3"]),
          /Created topic t/
        )
        assert.match(await tool("TopicCommand", [...at, "--describe", "--topic", "t"]), /PartitionCount: 3/)
        const sent = Array.from({ length: 20 }, (_, n) => `value-${n}`)
        await tool("ConsoleProducer", [...at, "--topic", "t"], sent.join("\n"))
        const read = await tool("consumer.ConsoleConsumer", [
          ...at,
          "--topic",
          "t",
          "--group",
          "classic",
          "--from-beginning",
          "--max-messages",
          "20",
          "--timeout-ms",
          "60000"
        ])
        assert.deepStrictEqual(lines(read, /^value-/), [...sent].sort())
        await tool("ConfigCommand", [
          ...at,
          "--alter",
          "--entity-type",
          "groups",
          "--entity-name",
          "shared",
          "--add-config",
          "share.auto.offset.reset=earliest"
        ])
        const shared = await tool("consumer.ConsoleShareConsumer", [
          ...at,
          "--topic",
          "t",
          "--group",
          "shared",
          "--max-messages",
          "20",
          "--timeout-ms",
          "60000"
        ])
        assert.deepStrictEqual(lines(shared, /^value-/), [...sent].sort())
        assert.match(
          await tool("consumer.group.ShareGroupCommand", [...at, "--describe", "--group", "shared"]),
          /shared +t +0 /
        )
      })
    })))

  it.live("show committed transactions only, where they are asked to", () =>
    Effect.scoped(Effect.gen(function*() {
      const embedded = yield* makeEmbedded()
      const { bootstrap } = yield* serve(embedded)
      embedded.createTopic("t")
      yield* Effect.promise(async () => {
        await load({ bootstrap }, makeRecords({ topic: "t", count: 5, prefix: "seen" }), { transactionalId: "tx" })
        const read = await tool("consumer.ConsoleConsumer", [
          "--bootstrap-server",
          bootstrap,
          "--topic",
          "t",
          "--from-beginning",
          "--isolation-level",
          "read_committed",
          "--max-messages",
          "5",
          "--timeout-ms",
          "60000"
        ])
        assert.strictEqual(lines(read, /^seen:/).length, 5)
      })
    })))
})
