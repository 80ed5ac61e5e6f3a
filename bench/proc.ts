/**
 * What /proc says of a process and its children (Linux): processor time and memory. The parsers are pure; what is gone
 * counts as nothing.
 */
import { readdirSync, readFileSync } from "node:fs"

/** Clock ticks a second, as /proc counts them on every Linux that Node runs on. */
const TICKS = 100

export interface Stat {
  readonly parent: number
  /** User and system time of the process and of its children that have ended and were waited for, seconds. */
  readonly cpuSeconds: number
}

/** /proc/PID/stat. The name in brackets may hold blanks and brackets, so fields count from the last bracket. */
export const parseStat = (text: string): Stat | null => {
  const end = text.lastIndexOf(")")
  if (end < 0) return null
  // Field 3 (state) is the first behind the name.
  const fields = text.slice(end + 2).split(" ")
  const ticks = [14, 15, 16, 17].reduce((sum, field) => sum + Number(fields[field - 3]), 0)
  return Number.isFinite(ticks) ? { parent: Number(fields[1]), cpuSeconds: ticks / TICKS } : null
}

export interface Memory {
  /** Resident now, MB (10^6 bytes). */
  readonly rssMb: number
  /** The most that was ever resident, MB. */
  readonly peakMb: number
}

const kilobytes = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? Number.NaN) * 1024 / 1e6

/** /proc/PID/status; null for what has no memory (a process that ended and was not waited for). */
export const parseStatus = (text: string): Memory | null => {
  const memory = { rssMb: kilobytes(text, "VmRSS"), peakMb: kilobytes(text, "VmHWM") }
  return Number.isFinite(memory.rssMb) && Number.isFinite(memory.peakMb) ? memory : null
}

/** The first line of /proc/stat: seconds that all cores together were busy since the start of the machine. */
export const parseBusy = (text: string): number => {
  // user nice system idle iowait irq softirq steal; what is idle or waits for a disk is not work.
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (/^cpu\s+(.*)$/m.exec(text)?.[1] ?? "")
    .split(" ").map(Number)
  return (user + nice + system + irq + softirq) / TICKS
}

/** `root` and all that descend from it. */
export const treeOf = (root: number, parents: ReadonlyMap<number, number>): ReadonlyArray<number> => {
  const found = [root]
  for (const pid of found) {
    for (const [child, parent] of parents) if (parent === pid && !found.includes(child)) found.push(child)
  }
  return found
}

const read = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return null
  }
}

const statOf = (pid: number): Stat | null => {
  const text = read(`/proc/${pid}/stat`)
  return text === null ? null : parseStat(text)
}

/** The process and its descendants that live now. Reads the stat of every process of the machine. */
export const processTree = (root: number): ReadonlyArray<number> => {
  const parents = new Map<number, number>()
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(Number(name))
    if (stat !== null) parents.set(Number(name), stat.parent)
  }
  return treeOf(root, parents)
}

export interface Usage extends Memory {
  readonly cpuSeconds: number
}

/** Of all these processes together; the peak is the sum of their peaks, which may lie at different times. */
export const usageOf = (pids: ReadonlyArray<number>): Usage => {
  let cpuSeconds = 0
  let rssMb = 0
  let peakMb = 0
  for (const pid of pids) {
    cpuSeconds += statOf(pid)?.cpuSeconds ?? 0
    const status = read(`/proc/${pid}/status`)
    const memory = status === null ? null : parseStatus(status)
    rssMb += memory?.rssMb ?? 0
    peakMb += memory?.peakMb ?? 0
  }
  return { cpuSeconds, rssMb, peakMb }
}

/** The processes whose command line has this word: brokers by the folder that they work in. */
export const processesWith = (word: string): ReadonlyArray<number> =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name) && (read(`/proc/${name}/cmdline`) ?? "").includes(word))
    .map(Number)

export const machineBusy = (): number => parseBusy(read("/proc/stat") ?? "")
