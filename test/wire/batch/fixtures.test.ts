import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { codecs, splitBatches } from "../../../src/wire/batch/recordBatch.ts"
import { decodeRecords, encodeBatch } from "../../../src/wire/batch/records.ts"
import { ProtocolError } from "../../../src/wire/bytes.ts"
import { described, describedRecord, expectedFixtures, fixtureFolder, type Judged, reading } from "./described.ts"
import { view } from "./generate.ts"

const bytesOf = (fixture: Judged): Buffer => readFileSync(join(fixtureFolder, fixture.file))
const fixtures = expectedFixtures()
const current = fixtures.filter((fixture) => !fixture.file.startsWith("java-format-"))

describe("batches written by Kafka's Java classes, its producer, its log cleaner, and librdkafka", () => {
  it("are there for every writer and codec", () => {
    const names = new Set(fixtures.map((fixture) => fixture.file))
    for (const codec of codecs) {
      for (
        const kind of [
          `java-${codec}`,
          `java-producer-${codec}`,
          `librdkafka-${codec}`,
          `java-${codec}-compacted`,
          `java-${codec}-log-append-time`
        ]
      ) {
        assert.isTrue(names.has(`${kind}.bin`), kind)
      }
      for (const writer of ["java-producer", "librdkafka"]) {
        assert.strictEqual(
          fixtures.find((fixture) => fixture.file === `${writer}-${codec}.bin`)?.batches[0]?.codec,
          codec
        )
      }
    }
    const snappy = bytesOf(fixtures.find((fixture) => fixture.file === "librdkafka-snappy.bin") as Judged)
    assert.notInclude(snappy.toString("latin1"), "SNAPPY", "librdkafka writes raw blocks; the fixture must show that")
  })

  it("are read as Kafka reads them: header, offsets, times, keys, values, headers", () => {
    for (const fixture of current) {
      const batches = splitBatches(bytesOf(fixture))
      assert.isTrue(batches.every((batch) => batch.crcIsValid()), fixture.file)
      assert.deepStrictEqual(batches.map(described), fixture.batches.map(reading), fixture.file)
    }
  })

  it("keep their records when decoded and encoded again", () => {
    for (const fixture of current) {
      for (const batch of splitBatches(bytesOf(fixture))) {
        const records = decodeRecords(batch)
        if (records.length === 0) continue
        const again = decodeRecords(view(encodeBatch(records, { codec: batch.codec, offsets: "keep" })))
        assert.deepStrictEqual(again.map(describedRecord), records.map(describedRecord), fixture.file)
      }
    }
  })

  it("of uncompressed batches with create time, encoding gives back Kafka's very bytes", () => {
    for (const name of ["java-none.bin", "java-producer-none.bin", "librdkafka-none.bin"]) {
      const bytes = readFileSync(join(fixtureFolder, name))
      for (const batch of splitBatches(bytes)) {
        const { baseSequence, partitionLeaderEpoch, producerEpoch, producerId } = batch
        const again = encodeBatch(decodeRecords(batch), {
          codec: "none",
          offsets: "keep",
          baseSequence,
          partitionLeaderEpoch,
          producerEpoch,
          producerId
        })
        assert.isTrue(again.equals(batch.bytes), name)
      }
    }
  })

  it("in the formats before Kafka 0.11 are refused with a sentence", () => {
    for (const format of [0, 1]) {
      const bytes = readFileSync(join(fixtureFolder, `java-format-${format}.bin`))
      assert.throws(() => splitBatches(bytes), ProtocolError, `the topic holds messages in format ${format}`)
    }
  })
})
