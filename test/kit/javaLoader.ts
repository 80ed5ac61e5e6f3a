/**
 * Fills topics through Kafka's own Java producer: for what librdkafka's binding cannot write (a header whose value is
 * null) and for batches as Java makes them. Costs a few seconds of Java: one call with all records, not one a record.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import type { Bootstrap, Codec, LoadRecord } from "./loader.ts"
import { projectRoot, versions } from "./paths.ts"
import { within } from "./until.ts"

export interface JavaRecord extends Omit<LoadRecord, "headers"> {
  readonly headers?: ReadonlyArray<readonly [key: string, value: Buffer | string | null]>
}

const field = (value: Buffer | string | null | undefined): string =>
  value === null || value === undefined ? "-" : Buffer.from(value).toString("base64")

const line = (record: JavaRecord): string =>
  [
    record.topic,
    record.partition,
    record.timestamp ?? "-",
    field(record.key),
    field(record.value),
    ...(record.headers ?? []).flatMap(([key, value]) => [field(key), field(value)])
  ].join("\t") + "\n"

/** Answers with the records' offsets, in their order, when the broker has confirmed all. */
export const loadWithJava = async (
  cluster: Bootstrap,
  records: ReadonlyArray<JavaRecord>,
  options: { readonly codec?: Codec; readonly properties?: Readonly<Record<string, string>> } = {}
): Promise<ReadonlyArray<number>> => {
  const settings = {
    "bootstrap.servers": cluster.bootstrap,
    "compression.type": options.codec ?? "none",
    "linger.ms": "50",
    ...options.properties
  }
  const libs = join(projectRoot, ".tools/kafka", versions.kafka, "libs/*")
  const program = join(projectRoot, "test/kit/java/Load.java")
  const java = process.env["JAVA_HOME"] ? join(process.env["JAVA_HOME"], "bin/java") : "java"
  const args = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", libs, program]
  const child = spawn(java, [...args, ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)], {
    stdio: ["pipe", "pipe", "pipe"]
  })
  const out: Array<string> = []
  const err: Array<string> = []
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk.toString()))
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject)
    child.once("close", resolve)
  })
  child.stdin.on("error", () => undefined)
  child.stdin.end(records.map(line).join(""))
  try {
    const code = await within(ended, { timeoutMs: 120_000, what: "Kafka's Java producer" })
    if (code !== 0) throw new Error(`Kafka's Java producer ended with ${code}: ${err.join("").slice(-2_000)}`)
  } finally {
    child.kill("SIGKILL")
  }
  return out.join("").split("\n").filter((text) => text !== "").map(Number)
}
