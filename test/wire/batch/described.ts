/** Batches in the words of test/fixtures/batches/Batches.java, so that our reading and Kafka's can be compared. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { BatchView } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords, type Rec } from "../../../src/wire/batch/records.ts"
import { projectRoot } from "../../kit/paths.ts"

export const fixtureFolder = join(projectRoot, "test/fixtures/batches")

export interface DescribedRecord {
  readonly offset: number
  readonly timestamp: string
  readonly key: string | null
  readonly value: string | null
  readonly headers: ReadonlyArray<readonly [string | null, string | null]>
}

export interface DescribedBatch {
  readonly baseOffset: number
  readonly lastOffset: number
  readonly size: number
  readonly leaderEpoch: number
  readonly codec: string
  readonly timestampType: string
  readonly control: boolean
  readonly transactional: boolean
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly maxTimestamp: string
  readonly deleteHorizon: boolean
  readonly records: ReadonlyArray<DescribedRecord>
}

/** What only Kafka can say. */
export interface JudgedBatch extends DescribedBatch {
  /** Why Kafka's consumer cannot read it. */
  readonly problem: string | null
  /** "ok", or why a broker refuses it from a producer. */
  readonly produce: string
  /** The timestamps that readers would then see, where it does not. */
  readonly appendedTimes: ReadonlyArray<string>
}

export interface Judged {
  readonly file: string
  readonly batches: ReadonlyArray<JudgedBatch>
}

const parse = (lines: string): ReadonlyArray<Judged> =>
  lines.trim().split("\n").map((line) => JSON.parse(line) as Judged)

/** What Kafka read in the committed fixtures when they were made. */
export const expectedFixtures = (): ReadonlyArray<Judged> =>
  parse(readFileSync(join(fixtureFolder, "expected.jsonl"), "utf8"))

/** Kafka's own classes read these files, now. Takes some seconds: one call for many files. */
export const judgedByKafka = (files: ReadonlyArray<string>): ReadonlyArray<Judged> => {
  const kafka = execFileSync(join(projectRoot, "scripts/kafka-jars.sh"), { encoding: "utf8", timeout: 600_000 }).trim()
  const program = join(fixtureFolder, "Batches.java")
  return parse(execFileSync("java", ["-cp", join(kafka, "libs/*"), program, "describe", ...files], {
    encoding: "utf8",
    timeout: 120_000,
    maxBuffer: 256 * 1024 * 1024,
    stdio: ["ignore", "pipe", "ignore"]
  }))
}

const hex = (bytes: Buffer | null): string | null =>
  bytes === null || bytes.length <= 300
    ? bytes?.toString("hex") ?? null
    : `${bytes.length} bytes, sha256 ${createHash("sha256").update(bytes).digest("hex")}`

export const describedRecord = (record: Rec): DescribedRecord => ({
  offset: record.offset,
  timestamp: String(record.timestamp),
  key: hex(record.key),
  value: hex(record.value),
  headers: record.headers.map((header) => [hex(header.key), hex(header.value)])
})

export const described = (batch: BatchView): DescribedBatch => ({
  baseOffset: batch.baseOffset,
  lastOffset: batch.lastOffset,
  size: batch.sizeInBytes,
  leaderEpoch: batch.partitionLeaderEpoch,
  codec: batch.codec,
  timestampType: batch.timestampType === "create" ? "CreateTime" : "LogAppendTime",
  control: batch.isControl,
  transactional: batch.isTransactional,
  producerId: batch.producerId,
  producerEpoch: batch.producerEpoch,
  baseSequence: batch.baseSequence,
  maxTimestamp: String(batch.maxTimestamp),
  deleteHorizon: batch.hasDeleteHorizon,
  records: decodeRecords(batch).map(describedRecord)
})

/** Kafka's reading without its verdicts. */
export const reading = (
  { appendedTimes: _times, problem: _problem, produce: _produce, ...batch }: JudgedBatch
): DescribedBatch => batch
