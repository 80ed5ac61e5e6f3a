/** A child process with its processor time and peak memory, read from /proc while it runs (Linux). */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"

export interface Usage {
  readonly code: number | null
  readonly wallSeconds: number
  readonly cpuSeconds: number
  /** Peak resident size, MB (10^6 bytes). */
  readonly peakMb: number
  readonly output: string
}

/** Clock ticks a second on Linux, as /proc counts them. */
const TICKS = 100
const SAMPLE_MS = 20

/** User and system time of a process and of its children that have ended, seconds; null when it is gone. */
const cpuOf = (pid: number): number | null => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
    return [11, 12, 13, 14].reduce((sum, n) => sum + Number(fields[n]), 0) / TICKS
  } catch {
    return null
  }
}

const peakOf = (pid: number): number | null => {
  try {
    const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))
    return found === null ? null : Number(found[1]) * 1024 / 1e6
  } catch {
    return null
  }
}

/** Runs a command to its end. The last sample is at most 20 ms old when it ends. */
export const measure = (command: string, args: ReadonlyArray<string>): Promise<Usage> =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const child: ChildProcess = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] })
    const pid = child.pid ?? 0
    let cpu = 0
    let peak = 0
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => output += chunk.toString())
    const timer = setInterval(() => {
      cpu = cpuOf(pid) ?? cpu
      peak = peakOf(pid) ?? peak
    }, SAMPLE_MS)
    child.once("error", reject)
    child.once("close", (code) => {
      clearInterval(timer)
      resolve({ code, wallSeconds: (performance.now() - started) / 1000, cpuSeconds: cpu, peakMb: peak, output })
    })
  })
