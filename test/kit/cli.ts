/** The program as a process, for tests: what it wrote and how it ended. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { projectRoot } from "./paths.ts"

export interface CliEnd {
  /** null when it ended by a signal. */
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** Non-empty lines of standard error. */
  readonly errLines: ReadonlyArray<string>
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Default src/cli/main.ts. */
  readonly script?: string
  /** After which it is killed, milliseconds. Default a minute. */
  readonly timeoutMs?: number
}

export interface CliProcess {
  readonly end: Promise<CliEnd>
  /** Completes when standard output and error together hold the text; rejects when the process ends without it. */
  readonly saw: (text: string) => Promise<void>
  readonly signal: (name: NodeJS.Signals) => void
}

export const CLI_FIXTURE = "test/fixtures/cliService.ts"

/** Starts `onceover ARGS`. A process that is still there after its time is killed, and its end says so. */
export const startCli = (
  args: ReadonlyArray<string>,
  { env = {}, script = "src/cli/main.ts", timeoutMs = 60_000 }: CliOptions = {}
): CliProcess => {
  const child = spawn(process.execPath, [join(projectRoot, script), ...args], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGKILL"
  })
  let out = ""
  let err = ""
  const waiting = new Set<() => void>()
  const heard = (): void => waiting.forEach((look) => look())
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text
    heard()
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text
    heard()
  })
  const end = new Promise<CliEnd>((resolve) =>
    child.once("close", (code) => resolve({ code, out, err, errLines: err.split("\n").filter((line) => line !== "") }))
  )
  const saw = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!(out + err).includes(text)) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
      void end.then((ended) =>
        reject(new Error(`ended with ${ended.code} before it said "${text}": ${ended.out}${ended.err}`))
      )
    })
  return { end, saw, signal: (name) => void child.kill(name) }
}

export const runCli = (args: ReadonlyArray<string>, options: CliOptions = {}): Promise<CliEnd> =>
  startCli(args, options).end
