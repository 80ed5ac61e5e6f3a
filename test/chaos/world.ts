/**
 * What a chaos scenario holds in its hands: two clusters of real brokers, a topic that is fed all the time, workers as
 * processes, and the judge. One flow, exactly-once without a fallback.
 *
 * The judge is librdkafka in read_committed: every source record once, in order in consumer mode. The clock judges
 * too: after each fault, once everything is healthy, every partition has to move again within a minute.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Feed, startFeed, untilMirrored } from "../integration/mirrorRun.ts"
import { createTopic, endOffsets, stableOffsets, untilSettled } from "../kit/admin.ts"
import { type Comparison, describeComparison } from "../kit/compare.ts"
import type { KafkaCluster } from "../kit/kafka.ts"
import { type Config, mirrorConfig, type Onceover, startOnceover } from "../kit/onceover.ts"
import { projectRoot } from "../kit/paths.ts"
import { abortedTransactions } from "../kit/transactions.ts"
import { until } from "../kit/until.ts"
import type { Dice } from "../simulation/dice.ts"

export type Mode = "share" | "consumer"

/** From "everything is healthy" to "every partition has moved". */
export const RECOVERY_MS = 60_000
/** Longer than anything that may pass; what takes longer hangs. */
const HANG_MS = 240_000
/** How far the feed may be before the mirror. */
const AHEAD = 6_000
const CHUNK = 200
export const FLOW = "chaos"
export const LOCK_MS = 10_000
export const TRANSACTION_TIMEOUT_MS = 10_000

export interface Worker {
  /** Its instance.id. */
  readonly name: string
  readonly process: Onceover
}

export interface WorldSpec {
  readonly source: KafkaCluster
  readonly target: KafkaCluster
  readonly topic: string
  readonly partitions: number
  readonly mode: Mode
  readonly dice: Dice
  /** Told after which no new fault begins. Milliseconds of performance.now(). */
  readonly until: number
  readonly say: (text: string) => void
}

export class World {
  readonly spec: WorldSpec
  readonly problems: Array<string> = []
  readonly #all: Array<Worker> = []
  #alive: Array<Worker> = []
  #feed: Feed | null = null
  #slowest = 0
  #slowestStop = 0
  #faults = 0

  constructor(spec: WorldSpec) {
    this.spec = spec
  }

  get dice(): Dice {
    return this.spec.dice
  }
  get source(): KafkaCluster {
    return this.spec.source
  }
  get target(): KafkaCluster {
    return this.spec.target
  }
  get targetTopic(): string {
    return `east.${this.spec.topic}`
  }
  get alive(): ReadonlyArray<Worker> {
    return this.#alive
  }
  get sent(): number {
    return this.#feed?.sent() ?? 0
  }
  /** Whether another fault may begin. */
  get goesOn(): boolean {
    return performance.now() < this.spec.until
  }
  readonly say = (text: string): void => this.spec.say(text)

  flow(mode: Mode, more: Config = {}): Config {
    return {
      name: FLOW,
      topics: [this.spec.topic],
      "group.protocol": mode,
      "group.id": `${this.spec.topic}-${mode}`,
      "exactly.once.fallback": "fail",
      "tasks.max": 2,
      "producer.override.transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
      ...(mode === "share"
        ? { "consumer.override.share.record.lock.duration.ms": String(LOCK_MS) }
        : { "consumer.override.session.timeout.ms": "6000", "consumer.override.heartbeat.interval.ms": "500" }),
      ...more
    }
  }

  async begin(): Promise<void> {
    const { partitions, source, target, topic } = this.spec
    await createTopic(source, topic, { partitions })
    // Made beforehand, so that the feed can look how far the mirror is.
    await createTopic(target, this.targetTopic, { partitions })
    this.#feed = await startFeed(source, target, {
      topic,
      targetTopic: this.targetTopic,
      partitions,
      ahead: AHEAD,
      chunk: CHUNK,
      timeoutMs: HANG_MS
    })
  }

  /** Waits until the source has this many records more. */
  async more(count: number): Promise<void> {
    await this.#feed?.more(count)
  }

  async start(name: string, mode: Mode = this.spec.mode, more: Config = {}): Promise<Worker> {
    const config = mirrorConfig(this.source, this.target, this.flow(mode, more), {
      "instance.id": name,
      log: { level: "debug" }
    })
    const worker: Worker = { name, process: await startOnceover({ config }) }
    this.#all.push(worker)
    this.#alive.push(worker)
    return worker
  }

  async running(name: string, mode: Mode = this.spec.mode, more: Config = {}): Promise<Worker> {
    const worker = await this.start(name, mode, more)
    await worker.process.untilRunning(HANG_MS)
    return worker
  }

  /** SIGKILL, at any moment. */
  async kill(worker: Worker): Promise<void> {
    this.#faults++
    this.#alive = this.#alive.filter((one) => one !== worker)
    await worker.process.kill("SIGKILL")
  }

  /** A fault of another kind, for the count. */
  fault(text: string): void {
    this.#faults++
    this.say(text)
  }

  /** SIGTERM, and the end that is promised for it. */
  async stop(worker: Worker): Promise<void> {
    this.#alive = this.#alive.filter((one) => one !== worker)
    const asked = performance.now()
    await worker.process.kill("SIGTERM")
    const { code, signal } = await worker.process.exit(HANG_MS)
    this.#slowestStop = Math.max(this.#slowestStop, performance.now() - asked)
    if (code !== 0) this.problems.push(`${worker.name} ended with ${code ?? signal} at SIGTERM`)
    const late = worker.process.logs().find(({ msg }) => msg?.startsWith("not finished within"))
    if (late !== undefined) this.problems.push(`${worker.name} at SIGTERM: ${late.msg}`)
  }

  /** Everything is healthy now: how long until each partition has records behind all that it had, for its readers. */
  async recovered(after: string): Promise<void> {
    const before = await until(() => endOffsets(this.target, this.targetTopic), {
      what: "the target's end offsets",
      timeoutMs: HANG_MS
    })
    const healthy = performance.now()
    let stable: ReadonlyArray<number> = []
    await until(async () => {
      stable = await stableOffsets(this.target, this.targetTopic)
      return before.every((end, partition) => (stable[partition] ?? 0) > end)
    }, {
      timeoutMs: HANG_MS,
      everyMs: 200,
      what: () => `every partition to move after ${after}: stable offsets ${stable.join()}, ${before.join()} before`
    })
    const took = performance.now() - healthy
    this.#slowest = Math.max(this.#slowest, took)
    if (took > RECOVERY_MS) this.problems.push(`${after}: ${(took / 1000).toFixed(0)} s until every partition moved`)
    this.say(`${after}: every partition moves after ${(took / 1000).toFixed(1)} s (${this.sent} records sent)`)
  }

  /** Ends the feed, waits until all is mirrored, stops the workers in order, and judges. */
  async judge(ordered = this.spec.mode === "consumer"): Promise<void> {
    const { source, target, topic } = this.spec
    // Whoever was started last has to come to run as well.
    await Promise.all(this.alive.map(({ process }) => process.untilRunning(HANG_MS)))
    const count = await this.#feed?.stop() ?? 0
    this.#feed = null
    const ended = performance.now()
    await this.#caughtUp()
    const took = performance.now() - ended
    if (took > RECOVERY_MS) this.problems.push(`${(took / 1000).toFixed(0)} s from the last record to the end`)
    const places = { topic, targetTopic: this.targetTopic }
    const prevented = await this.#prevented()
    for (const worker of this.alive) await this.stop(worker)
    await untilSettled(target, [this.targetTopic], HANG_MS)
    // Whatever was still at work when everything was there would be doubled now.
    const comparison = await untilMirrored(source, target, places, [], HANG_MS)
    this.#compare(comparison, count, ordered)
    const aborted = await abortedTransactions(target, [this.targetTopic])
    this.say(
      `${describeComparison(comparison)}; ${this.#faults} faults, slowest recovery ${
        (this.#slowest / 1000).toFixed(1)
      } s, caught up ${(took / 1000).toFixed(1)} s after the last record, slowest stop ${
        (this.#slowestStop / 1000).toFixed(1)
      } s; ${aborted} transactions aborted, ${prevented} duplicates prevented by who lived on`
    )
    this.#sayRestarts()
  }

  /** A flow that a worker had to start again is no fault, and worth a look. */
  #sayRestarts(): void {
    for (const { name, process } of this.#all) {
      for (const { msg = "" } of process.logs()) {
        if (msg.startsWith("the flow failed and is started again")) this.say(`${name}: ${msg}`)
      }
    }
  }

  /** Until a worker says that the group has passed every record. */
  async #caughtUp(): Promise<void> {
    const { source, topic } = this.spec
    const ends = await endOffsets(source, topic)
    const passed = async ({ process }: Worker): Promise<boolean> => {
      const partitions = (await process.status())?.flows[0]?.partitions ?? []
      return ends.every((end, n) => partitions.some((p) => p.partition === n && (p.position ?? 0) >= end))
    }
    let said = ""
    await until(async () => {
      const [first] = this.alive
      said = JSON.stringify((await first?.process.status())?.flows[0]?.partitions ?? [])
      return (await Promise.all(this.alive.map(passed))).some(Boolean)
    }, { timeoutMs: HANG_MS, everyMs: 200, what: () => `the group to pass ${ends.join()}; a worker has ${said}` })
  }

  #compare(comparison: Comparison, count: number, ordered: boolean): void {
    const { altered, doubled, foreign, lost, misplaced, outOfOrder, source } = comparison
    if (source !== count) this.problems.push(`the source shows ${source} of ${count} records that were confirmed`)
    const wrong = { lost, doubled, altered, misplaced, foreign, ...(ordered ? { outOfOrder } : {}) }
    for (const [what, ids] of Object.entries(wrong)) {
      if (ids.length > 0) this.problems.push(`${ids.length} ${what}: ${ids.slice(0, 5).join(", ")}`)
    }
  }

  async #prevented(): Promise<number> {
    let sum = 0
    for (const { process } of this.alive) {
      const samples = (await process.metrics()).get("onceover_duplicates_prevented_total") ?? []
      sum += samples.reduce((total, { value }) => total + value, 0)
    }
    return sum
  }

  /** Writes what workers and brokers have said to a folder, for who looks for the cause. */
  keepLogs(name: string): string {
    const folder = join(projectRoot, ".work", name)
    mkdirSync(folder, { recursive: true })
    this.#all.forEach((worker, n) => {
      writeFileSync(join(folder, `${String(n).padStart(2, "0")}-${worker.name}.log`), worker.process.output())
    })
    for (const cluster of [this.source, this.target]) {
      writeFileSync(join(folder, `${cluster.name}.log`), cluster.logTail(100_000))
    }
    return folder
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#all.map((worker) => worker.process.dispose()))
    await this.#feed?.stop().catch(() => undefined)
  }
}
