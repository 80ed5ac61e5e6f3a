/**
 * What the brokers and Kafka's own Java clients can do at all on this machine: kafka-consumer-perf-test reads the source, then
 * kafka-producer-perf-test writes to the target. A mirror does both at once, on the same cores.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { projectRoot, versions } from "../../test/kit/paths.ts"
import { fill, valueOf } from "../fill.ts"
import { javaCommand, loggingOption } from "../peers/mirrorMaker.ts"
import type { Measured, Peaks } from "../results.ts"
import { watchTree } from "../run.ts"
import { makeShape, recordBytes, type Shape, topicsOf } from "../shape.ts"
import { createMany, deleteMany } from "../topics.ts"
import type { Context } from "./context.ts"

const PAYLOADS = 2_000

const runTool = async (
  context: Context,
  main: string,
  args: ReadonlyArray<string>
): Promise<{ readonly output: string; readonly cpuSeconds: number }> => {
  const child = context.session.spawn(javaCommand(), [
    "-Xmx512m",
    loggingOption,
    "-cp",
    join(projectRoot, ".tools/kafka", versions.kafka, "libs/*"),
    `org.apache.kafka.tools.${main}`,
    ...args
  ])
  const usage = watchTree(child.pid)
  let cpuSeconds = 0
  while (child.running()) {
    cpuSeconds = Math.max(cpuSeconds, usage().cpuSeconds)
    await delay(20)
  }
  if ((await child.exited) !== 0) throw new Error(`${main} failed: ${child.output().slice(-1_000)}`)
  return { output: child.output(), cpuSeconds }
}

/** The column fetch.nMsg.sec of the last line: joining the group is not in it. */
export const consumerRate = (output: string): number => {
  const lines = output.trim().split("\n").filter((line) => line.includes(","))
  const names = lines.find((line) => line.includes("fetch.nMsg.sec"))?.split(",").map((name) => name.trim()) ?? []
  return Number(lines.at(-1)?.split(",")[names.indexOf("fetch.nMsg.sec")] ?? Number.NaN)
}

/** Of the last line: "500000 records sent, 91407.7 records/sec (...)". */
export const producerRate = (output: string): number =>
  Number([...output.matchAll(/records sent, ([\d.]+) records\/sec/g)].at(-1)?.[1] ?? Number.NaN)

const consume = async (context: Context, shape: Shape) => {
  const { cpuSeconds, output } = await runTool(context, "ConsumerPerformance", [
    "--bootstrap-server",
    context.source.bootstrap,
    "--topic",
    topicsOf(shape)[0] ?? "",
    "--num-records",
    String(shape.records)
  ])
  return { records: consumerRate(output), cpuSeconds }
}

const produce = async (context: Context, shape: Shape) => {
  const topic = "peak-written"
  const payloads = join(context.session.folder, "payloads")
  writeFileSync(
    payloads,
    Array.from({ length: PAYLOADS }, (_, n) => valueOf(n, shape.valueBytes).toString("latin1")).join("\n")
  )
  await createMany(context.target, [topic], shape.partitions)
  try {
    const { cpuSeconds, output } = await runTool(context, "ProducerPerformance", [
      "--bootstrap-server",
      context.target.bootstrap,
      "--topic",
      topic,
      "--num-records",
      String(shape.records),
      "--throughput",
      "-1",
      "--payload-file",
      payloads,
      "--command-property",
      `compression.type=${shape.codec}`,
      "batch.size=327680",
      "linger.ms=20"
    ])
    return { records: producerRate(output), cpuSeconds }
  } finally {
    await deleteMany(context.target, [topic])
  }
}

export const peak = async (context: Context): Promise<Omit<Peaks, keyof Measured>> => {
  const shape = makeShape({ name: "peak" }, context.options.megabytes)
  const tools = [
    { tool: "kafka-consumer-perf-test, reading the source", run: consume },
    { tool: "kafka-producer-perf-test, writing to the target", run: produce }
  ].map((tool) => ({ ...tool, mbPerSecond: [] as Array<number>, cpuSecondsPerGb: [] as Array<number> }))
  try {
    await fill(context.source, shape)
    for (let round = 0; round < context.options.rounds; round++) {
      for (const { cpuSecondsPerGb, mbPerSecond, run, tool } of tools) {
        const { cpuSeconds, records } = await run(context, shape)
        mbPerSecond.push(records * shape.valueBytes / 1e6)
        cpuSecondsPerGb.push(cpuSeconds / (recordBytes(shape) / 1e9))
        context.say(`  ${tool}: ${mbPerSecond.at(-1)?.toFixed(0)} MB/s, ${cpuSecondsPerGb.at(-1)?.toFixed(2)} CPU s/GB`)
      }
    }
  } catch (error) {
    context.fail((error as Error).message)
  } finally {
    await deleteMany(context.source, topicsOf(shape))
  }
  return { measured: tools.map(({ cpuSecondsPerGb, mbPerSecond, tool }) => ({ tool, mbPerSecond, cpuSecondsPerGb })) }
}
