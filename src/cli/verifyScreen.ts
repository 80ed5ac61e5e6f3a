/**
 * How far a comparison is, on standard error: a bar with rate and time left on a terminal (cli-progress), else a plain
 * line every few seconds. Standard output is for the report.
 */
import type { VerifyProgress } from "../mirror/verify/options.ts"

export interface VerifyScreen {
  readonly show: (progress: VerifyProgress) => void
  /** Gives the terminal back. */
  readonly end: () => void
}

/** Milliseconds of a monotonic clock. */
type Now = () => number

const LINE_EVERY_MS = 10_000
const DRAW_EVERY_MS = 200
const seconds = (n: number): string =>
  n < 60 ? `${Math.round(n)} s` : n < 3_600 ? `${Math.round(n / 60)} min` : `${(n / 3_600).toFixed(1)} h`

/** Rate and time left, from when the first offset was passed. */
export const rates = (now: Now) => {
  let began: number | null = null
  return ({ done, total }: VerifyProgress): { readonly rate: number; readonly left: number | null } => {
    if (done === 0) return { rate: 0, left: null }
    began ??= now()
    const elapsed = (now() - began) / 1_000
    const rate = elapsed < 0.5 ? 0 : done / elapsed
    return { rate, left: rate === 0 ? null : Math.max(0, total - done) / rate }
  }
}

const words = (progress: VerifyProgress, { left, rate }: ReturnType<ReturnType<typeof rates>>): string =>
  progress.waiting !== null
    ? `waiting: ${progress.waiting}`
    : `${progress.done.toLocaleString("en-US")} of ${progress.total.toLocaleString("en-US")} offsets, ${
      Math.round(rate).toLocaleString("en-US")
    }/s${left === null ? "" : `, ${seconds(left)} left`}`

const lines = (err: (text: string) => void, now: Now): VerifyScreen => {
  const rate = rates(now)
  let said = now()
  return {
    show: (progress) => {
      const at = rate(progress)
      if (now() - said < LINE_EVERY_MS) return
      said = now()
      err(`onceover: ${words(progress, at)}\n`)
    },
    end: () => {}
  }
}

const bar = async (now: Now): Promise<VerifyScreen> => {
  const { Presets, SingleBar } = (await import("cli-progress")).default
  const made = new SingleBar({
    format: "{bar} {percentage}%  {words}",
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
    // Drawn by `show`, so that no timer keeps the process alive.
    noTTYOutput: false,
    autopadding: true,
    barsize: 24,
    fps: 1_000 / DRAW_EVERY_MS
  }, Presets.shades_classic)
  const rate = rates(now)
  let drawn = -Infinity
  made.start(1, 0, { words: "" })
  return {
    show: (progress) => {
      const at = rate(progress)
      if (now() - drawn < DRAW_EVERY_MS) return
      drawn = now()
      made.setTotal(Math.max(1, progress.total))
      made.update(progress.done, { words: words(progress, at) })
    },
    end: () => made.stop()
  }
}

export const openScreen = async (
  terminal: boolean,
  err: (text: string) => void,
  now: Now = () => performance.now()
): Promise<VerifyScreen> => terminal ? bar(now) : lines(err, now)
