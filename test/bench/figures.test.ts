/** From samples to the figures of a run. */
import { assert, describe, it } from "vitest"
import { figuresOf, type Sample } from "../../bench/figures.ts"

const sample = (at: number, cpuSeconds: number, offsets: number): Sample => ({
  at,
  cpuSeconds,
  offsets,
  rssMb: 50,
  peakMb: 60 + cpuSeconds,
  brokerSeconds: cpuSeconds * 2,
  otherSeconds: cpuSeconds / 10
})

describe("figures of a run", () => {
  it("the running part leaves out the start, and ends when the target last grew", () => {
    const figures = figuresOf(
      [
        sample(0, 0, 0),
        sample(1_000, 1, 0),
        sample(2_000, 1.5, 20),
        sample(3_000, 2, 60),
        sample(4_000, 2.5, 100),
        sample(5_000, 9, 100)
      ],
      1_000,
      1e9
    )
    assert.strictEqual(figures.whole.seconds, 4)
    assert.strictEqual(figures.whole.cpuSeconds, 2.5)
    assert.strictEqual(figures.whole.cpuSecondsPerGb, 2.5)
    assert.strictEqual(figures.running?.seconds, 2)
    assert.closeTo(figures.running?.bytes ?? 0, 0.8e9, 1)
    assert.closeTo(figures.running?.cpuSecondsPerGb ?? 0, 1 / 0.8, 1e-9)
    assert.closeTo(figures.running?.mbPerSecond ?? 0, 400, 1e-6)
    assert.closeTo(figures.running?.recordsPerSecond ?? 0, 400, 1e-6)
    assert.closeTo(figures.running?.brokerCores ?? 0, 1, 1e-9)
    assert.closeTo(figures.running?.otherCores ?? 0, 0.05, 1e-9)
    assert.strictEqual(figures.peakMb, 62.5)
  })

  it("has no running part when more than half was there at once: too little is left to measure", () => {
    const figures = figuresOf([sample(0, 0, 0), sample(1_000, 1, 60), sample(2_000, 2, 100)], 100, 1e6)
    assert.isNull(figures.running)
    assert.strictEqual(figures.whole.seconds, 2)
  })

  it("of a process that had worked before count only what it used since", () => {
    assert.strictEqual(figuresOf([sample(0, 70, 0), sample(1_000, 73, 100)], 100, 1e9).whole.cpuSeconds, 3)
  })

  it("a run without records has none", () => {
    assert.throws(() => figuresOf([sample(0, 0, 0)], 100, 1e9))
  })
})
