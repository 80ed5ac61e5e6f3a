/** Tables, verdicts, charts and the page of the benchmark. */
import { assert, describe, it } from "vitest"
import type { Figures, Part } from "../../bench/figures.ts"
import { cellRatios, type Goal, goalsOf } from "../../bench/report/goals.ts"
import { BEGIN, END, measuredPart, replacePart } from "../../bench/report/page.ts"
import { plotsOf } from "../../bench/report/plots.ts"
import { compactJson } from "../../bench/report/publish.ts"
import { barChart, escapeText, lineChart } from "../../bench/report/svg.ts"
import { type Compared, mergeSuites, type Results } from "../../bench/results.ts"
import type { Run } from "../../bench/run.ts"
import { makeShape } from "../../bench/shape.ts"
import { latencyPeers } from "../../bench/suites/latency.ts"
import { memoryPeers } from "../../bench/suites/memory.ts"
import { cellPeers, COST_SHAPE, costPeers } from "../../bench/suites/compare.ts"

const part = (cpuSecondsPerGb: number, mbPerSecond: number): Part => ({
  seconds: 1,
  cpuSeconds: 1,
  bytes: 1,
  cpuSecondsPerGb,
  mbPerSecond,
  recordsPerSecond: 1_000,
  brokerCores: 1,
  otherCores: 0
})

const run = (peer: string, shape: string, cpu: number, speed: number, doubts: ReadonlyArray<string> = []): Run => {
  const figures: Figures = { whole: part(cpu * 2, speed / 2), running: part(cpu, speed), peakMb: 100 }
  return { peer, shape, ...figures, doubts, load: 0 }
}

const compared = (names: ReadonlyArray<string>, runs: ReadonlyArray<Run>): Compared => ({
  date: "2026-11-30T12:00:00.000Z",
  load: 0.5,
  seconds: 10,
  failures: [],
  rounds: 1,
  shapes: names.map((name) => makeShape({ name }, 10)),
  runs
})

const results = (suites: Results["suites"]): Results => ({
  date: "2026-11-30T12:00:00.000Z",
  command: "npm run bench",
  machine: { cpu: "a <fast> one", cores: 2, memoryGb: 8, os: "Linux 6", versions: {} },
  suites
})

const measured = results({
  cost: compared([COST_SHAPE], [run(costPeers.consumer.name, COST_SHAPE, 2, 50)]),
  latency: {
    date: "2026-11-30T12:00:00.000Z",
    load: 0.5,
    seconds: 10,
    failures: ["latency of one failed: why"],
    recordsPerSecond: 1_000,
    valueBytes: 1_000,
    partitions: 4,
    measured: [{
      peer: "one",
      records: 4,
      median: 3,
      p99: 9,
      max: 2_000,
      // As they come back from JSON.
      bins: [{ upTo: 5, count: 3 }, { upTo: 10, count: 0 }, { upTo: null as unknown as number, count: 1 }]
    }]
  }
})

const found = (goals: ReadonlyArray<Goal>, start: string): Goal => {
  const one = goals.find(({ figure }) => figure.startsWith(start))
  if (one === undefined) throw new Error(`no goal ${start}`)
  return one
}

const COST = "CPU of MirrorMaker 2 for a GB"

describe("verdicts", () => {
  const withCost = (ours: number, doubts: ReadonlyArray<string> = []) =>
    results({
      cost: compared([COST_SHAPE], [
        run(costPeers.consumer.name, COST_SHAPE, ours, 50, doubts),
        run(costPeers.mirrorMaker.name, COST_SHAPE, 30, 25)
      ])
    })

  it("say met where it is, not met where it is not, and not measured where there is nothing", () => {
    assert.deepInclude(found(goalsOf(withCost(2)), COST), { verdict: "met", measured: "15.0 times" })
    assert.strictEqual(found(goalsOf(withCost(2.1)), COST).verdict, "not met")
    assert.isTrue(goalsOf(results({})).every(({ verdict }) => verdict === "not measured"))
  })

  it("do not rest on a run that is not believed", () => {
    assert.strictEqual(found(goalsOf(withCost(0.1, ["a record is missing"])), COST).verdict, "not measured")
  })

  it("do not rest on a latency at another rate, or on fewer topics than the goal is for", () => {
    const at = (recordsPerSecond: number) => {
      const { latency } = measured.suites
      if (latency === undefined) throw new Error("there is one above")
      const one = { peer: latencyPeers.share.name, records: 1, median: 3, p99: 9, max: 9, bins: [] }
      return found(
        goalsOf(results({ latency: { ...latency, recordsPerSecond, measured: [one] } })),
        "latency, median: share"
      )
    }
    assert.strictEqual(at(1_000).verdict, "met")
    assert.strictEqual(at(50).verdict, "not measured")
    const topics = (what: string, peakMb: number) => {
      const memories = { date: "", load: 0, seconds: 1, failures: [], what, idleSeconds: 1 }
      const one = { peer: memoryPeers.share.name, peakMb, idleMb: peakMb }
      return found(
        goalsOf(results({ topics: { ...memories, measured: [one] } })),
        "memory with 1000 topics, 10000 partitions: share"
      )
    }
    assert.strictEqual(topics("1000 topics, 10000 partitions", 299).verdict, "met")
    assert.strictEqual(topics("1000 topics, 10000 partitions", 301).verdict, "not met")
    assert.strictEqual(topics("100 topics, 1000 partitions", 100).verdict, "not measured")
  })

  it("name the cells that are below MirrorMaker 2, and do not pass over those without a figure", () => {
    const cells = (speeds: Readonly<Record<string, readonly [ours: number | null, theirs: number]>>) =>
      results({
        cells: compared(
          Object.keys(speeds),
          Object.entries(speeds).flatMap(([name, [ours, theirs]]) => [
            ...(ours === null ? [] : [run(cellPeers.consumer.name, name, 1, ours)]),
            run(cellPeers.mirrorMaker.name, name, 1, theirs)
          ])
        )
      })
    const mixed = cells({ a: [60, 10], b: [9, 10] })
    assert.deepStrictEqual(cellRatios(mixed).map(({ consumer }) => consumer), [6, 0.9])
    const least = found(goalsOf(mixed), "MB/s over MirrorMaker 2 in the least good")
    assert.strictEqual(least.verdict, "not met")
    assert.include(least.measured, "below in b")
    const partial = found(goalsOf(cells({ a: [60, 10], b: [null, 10] })), "MB/s over MirrorMaker 2 in the least good")
    assert.strictEqual(partial.verdict, "not met")
    assert.include(partial.measured, "1 without a figure")
  })
})

describe("charts", () => {
  const hostile = `<script>&"'`

  it("let no name out of its text", () => {
    assert.strictEqual(escapeText(hostile), "&lt;script&gt;&amp;&quot;&#39;")
    const bars = barChart({
      title: hostile,
      description: hostile,
      unit: hostile,
      series: [hostile],
      groups: [{ name: hostile, bars: [{ value: 1 }] }]
    })
    const lines = lineChart({
      title: hostile,
      description: hostile,
      xName: hostile,
      yName: hostile,
      lines: [{ name: hostile, points: [[1, 0], [10, 1]] }]
    })
    for (const svg of [bars, lines]) {
      assert.notInclude(svg, hostile)
      assert.notInclude(svg, "<script")
      assert.notMatch(svg, /NaN|Infinity|undefined/)
    }
  })

  it("have a title and a description, and colours for the dark", () => {
    const svg = barChart({ title: "T", description: "D", unit: "s", series: [], groups: [] })
    assert.include(svg, "<title id=\"t\">T</title><desc id=\"d\">D</desc>")
    assert.include(svg, "aria-labelledby=\"t d\"")
    assert.include(svg, "prefers-color-scheme:dark")
  })

  it("leave out a bar without a figure", () => {
    const bars = (all: ReadonlyArray<{ value: number } | null>) =>
      barChart({ title: "", description: "", unit: "", series: ["a", "b"], groups: [{ name: "", bars: all }] })
        .split("height=\"14\"").length - 1
    assert.strictEqual(bars([{ value: 1 }, { value: 2 }]), 2)
    assert.strictEqual(bars([{ value: 1 }, null]), 1)
  })
})

describe("the page", () => {
  it("keeps what people wrote around the generated part, however often it is made", () => {
    const page = `before\n\n${BEGIN}\nold\n${END}\n\nafter\n`
    const once = replacePart(page, "new")
    assert.strictEqual(once, `before\n\n${BEGIN}\n\nnew\n\n${END}\n\nafter\n`)
    assert.strictEqual(replacePart(once, "new"), once)
    assert.throws(() => replacePart("a page without marks", "new"))
  })

  it("says what failed, on which machine and with which command", () => {
    const text = measuredPart(measured, plotsOf(measured))
    assert.include(text, "latency of one failed: why")
    assert.include(text, "`npm run bench`")
    assert.include(text, "a <fast> one")
    assert.include(text, "](plots/cost.svg)")
  })

  it("the raw figures are JSON and hold every run", () => {
    const parsed = JSON.parse(compactJson(measured)) as Results
    assert.strictEqual(parsed.suites.cost?.runs.length, 1)
    assert.strictEqual(parsed.machine.cores, 2)
  })
})

describe("results of two runs together", () => {
  it("of a cell count the fresh figures only, other cells and suites stay", () => {
    const old = { cells: compared(["a", "b"], [run("x", "a", 1, 1), run("x", "b", 1, 1)]), cost: compared([], []) }
    const merged = mergeSuites(old, { cells: compared(["b"], [run("x", "b", 1, 2)]) })
    assert.deepStrictEqual(merged.cells?.runs.map(({ running, shape }) => [shape, running?.mbPerSecond]), [["a", 1], [
      "b",
      2
    ]])
    assert.deepStrictEqual(merged.cells?.shapes.map(({ name }) => name), ["a", "b"])
    assert.isDefined(merged.cost)
  })
})
