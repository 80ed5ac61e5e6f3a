/** What /proc says, read rightly. */
import { assert, describe, it } from "vitest"
import { parseBusy, parseStat, parseStatus, treeOf, usageOf } from "../../bench/proc.ts"

/** Fields 3 to 20 of proc(5), with recognizable times: utime 700, stime 50, cutime 6, cstime 4. */
const fields = "S 42 1 1 0 -1 4194304 10 20 30 40 700 50 6 4 20 0 11 0 5000"

describe("/proc", () => {
  it("counts user and system time of a process and of its children that have ended", () => {
    assert.deepStrictEqual(parseStat(`1234 (node) ${fields}`), { parent: 42, cpuSeconds: 7.6 })
  })

  it("is not misled by blanks and brackets in a process's name", () => {
    assert.deepStrictEqual(parseStat(`1234 (a) S 99 (b c) ${fields}`), { parent: 42, cpuSeconds: 7.6 })
  })

  it("has nothing to say of what it cannot read", () => {
    assert.isNull(parseStat(""))
    assert.isNull(parseStatus("Name:\tzombie\nState:\tZ (zombie)\n"))
  })

  it("gives memory in MB of a million bytes, now and at most", () => {
    const memory = parseStatus("Name:\tnode\nVmPeak:\t  999999 kB\nVmHWM:\t  200000 kB\nVmRSS:\t  100000 kB\n")
    assert.deepStrictEqual(memory, { rssMb: 102.4, peakMb: 204.8 })
  })

  it("does not count idle time and waiting for disks as work of the machine", () => {
    assert.strictEqual(parseBusy("cpu  100 20 30 9999 8888 5 5 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"), 1.6)
  })

  it("finds children and theirs, and nobody else's", () => {
    const parents = new Map([[1, 0], [10, 1], [11, 10], [12, 11], [20, 1], [21, 20]])
    assert.deepStrictEqual([...treeOf(10, parents)].toSorted(), [10, 11, 12])
  })

  it("sees this very process, where there is a /proc", () => {
    if (process.platform !== "linux") return
    const usage = usageOf([process.pid])
    assert.isAbove(usage.cpuSeconds, 0)
    assert.isAbove(usage.rssMb, 10)
    assert.isAtLeast(usage.peakMb, usage.rssMb * 0.9)
  })
})
