/** The command line of the benchmark. */
import { assert, describe, it } from "vitest"
import { parseOptions } from "../../bench/options.ts"
import { allCells, recordBytes } from "../../bench/shape.ts"
import { consumerRate, producerRate } from "../../bench/suites/peak.ts"

describe("options of the benchmark", () => {
  it("default to every suite and three rounds; a word that is given wins over --quick", () => {
    assert.strictEqual(parseOptions([]).rounds, 3)
    assert.include(parseOptions([]).suites, "latency")
    assert.strictEqual(parseOptions(["--quick"]).rounds, 1)
    assert.strictEqual(parseOptions(["--quick", "--rounds", "2"]).rounds, 2)
  })

  it("are refused with what is allowed", () => {
    assert.throws(() => parseOptions(["--suite", "speed"]), /latency/)
    assert.throws(() => parseOptions(["--cells", "2KB-lz4"]), /1KB-lz4/)
    assert.throws(() => parseOptions(["--rounds", "0"]), /from 1/)
    assert.throws(() => parseOptions(["--round", "1"]))
  })

  it("cells have names of their own, that no other's topic pattern matches", () => {
    const names = allCells(100).map(({ name }) => name)
    assert.strictEqual(new Set(names).size, names.length)
    for (const name of names) {
      for (const other of names) {
        if (other !== name) assert.notMatch(`${other}-0`, new RegExp(`^${name}-[0-9]+$`))
      }
    }
  })

  it("a cell has about the bytes that were asked for; small records a quarter", () => {
    for (const shape of allCells(100)) {
      assert.closeTo(recordBytes(shape) / 1e6, shape.valueBytes === 100 ? 25 : 100, 1, shape.name)
    }
  })
})

describe("Kafka's own tools", () => {
  it("the consumer's rate is read without the time that joining took", () => {
    const output =
      "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n" +
      "2026-11-30 18:00:00:000, 2026-11-30 18:00:04:000, 190.7, 47.6, 200000, 50000.0, 2000, 2000, 95.3, 100000.0\n"
    assert.strictEqual(consumerRate(output), 100_000)
  })

  it("the producer's rate is that of all records, not of the last interval", () => {
    const output = "301 records sent, 60.2 records/sec (0.06 MB/sec), 1.0 ms avg latency, 5.0 ms max latency.\n" +
      "200000 records sent, 91407.7 records/sec (87.17 MB/sec), 1.00 ms avg latency, 500.00 ms max latency, 1 ms 50th.\n"
    assert.strictEqual(producerRate(output), 91_407.7)
  })
})
