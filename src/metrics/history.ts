/**
 * The last 15 minutes of each flow in steps of 5 seconds, for the page's plots: kept in the service, so that a reload
 * of the page loses nothing. Bounded: 180 points a flow, whatever happens.
 */
import { Clock, Effect } from "effect"

/** Seconds between two points. */
export const STEP_SECONDS = 5
/** 15 minutes. */
export const MAX_POINTS = 180

/** What a flow has done and has to do at one moment. */
export interface Reading {
  readonly flow: string
  /** Sums since the start of the process. */
  readonly records: number
  readonly bytes: number
  /** Records of all partitions; null while no partition's lag is known. */
  readonly lag: number | null
}

export interface FlowHistory {
  readonly name: string
  /** As many as `times`; null where the flow had no reading. */
  readonly recordsPerSecond: ReadonlyArray<number | null>
  readonly bytesPerSecond: ReadonlyArray<number | null>
  readonly lag: ReadonlyArray<number | null>
}

/** What /history gives: columns, oldest first. */
export interface HistoryDocument {
  readonly stepSeconds: number
  /** Milliseconds since 1970 at the end of each step. */
  readonly times: ReadonlyArray<number>
  readonly flows: ReadonlyArray<FlowHistory>
}

interface Point {
  readonly atMs: number
  readonly flows: ReadonlyMap<string, readonly [records: number, bytes: number, lag: number | null]>
}

const MILLIS = 1000
/** Rates are told to a tenth: nobody sees more in a plot. */
const rounded = (n: number): number => Math.round(n * 10) / 10

export class History {
  readonly #points: Array<Point> = []
  #last: { readonly atMs: number; readonly readings: ReadonlyMap<string, Reading> } | null = null

  /** Takes the readings of all flows at `atMs`. The first call only begins: a rate wants two. */
  add(atMs: number, readings: ReadonlyArray<Reading>): void {
    const before = this.#last
    this.#last = { atMs, readings: new Map(readings.map((reading) => [reading.flow, reading])) }
    if (before === null || atMs <= before.atMs) return
    const seconds = (atMs - before.atMs) / MILLIS
    const flows = new Map<string, readonly [number, number, number | null]>()
    for (const { bytes, flow, lag, records } of readings) {
      const then = before.readings.get(flow)
      if (then === undefined) continue
      const rate = (now: number, past: number): number => rounded(Math.max(0, now - past) / seconds)
      flows.set(flow, [rate(records, then.records), rate(bytes, then.bytes), lag])
    }
    this.#points.push({ atMs, flows })
    if (this.#points.length > MAX_POINTS) this.#points.shift()
  }

  document(): HistoryDocument {
    const names = new Set(this.#points.flatMap((point) => [...point.flows.keys()]))
    const column = (name: string, n: 0 | 1 | 2) => this.#points.map((point) => point.flows.get(name)?.[n] ?? null)
    return {
      stepSeconds: STEP_SECONDS,
      times: this.#points.map((point) => point.atMs),
      flows: [...names].map((name) => ({
        name,
        recordsPerSecond: column(name, 0),
        bytesPerSecond: column(name, 1),
        lag: column(name, 2)
      }))
    }
  }
}

/** Takes a reading every 5 seconds, for ever. `read` must not wait. */
export const keepHistory = (history: History, read: () => ReadonlyArray<Reading>): Effect.Effect<never> =>
  Effect.gen(function*() {
    history.add(yield* Clock.currentTimeMillis, read())
    yield* Effect.sleep(STEP_SECONDS * MILLIS)
  }).pipe(Effect.forever)
