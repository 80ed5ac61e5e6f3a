/** Whether figures are worse than those of a baseline, and in which words. Pure. */

/** What is counted, and how it is said. */
export const UNITS = {
  instructions: "instructions",
  time: "times the reference loop",
  heapBytes: "bytes of the heap",
  bufferBytes: "bytes outside of the heap"
} as const
export type Unit = keyof typeof UNITS

/** Figures of one operation, by the name of the case. */
export type Figures = Readonly<Record<string, number>>
export type FiguresOf = Readonly<Partial<Record<Unit, Figures>>>

/** More than a fifth worse is a regression. */
export const TOLERANCE = 0.2

/** Differences that mean nothing, whatever their share: an object or two, a call. */
const SLACK: Readonly<Record<Unit, number>> = { instructions: 100, time: 0.02, heapBytes: 32, bufferBytes: 64 }

export interface Comparison {
  /** One sentence for each regression, and for each case that cannot be compared. */
  readonly problems: ReadonlyArray<string>
  /** What has become better by as much, so that the baseline should be made anew; nothing fails by it. */
  readonly gains: ReadonlyArray<string>
}

const shown = (value: number, unit: Unit): string =>
  unit === "time" ? value.toPrecision(3) : Math.round(value).toLocaleString("en")

const percent = (before: number, now: number): string =>
  before === 0 ? "from nothing" : `${now > before ? "+" : ""}${((now / before - 1) * 100).toFixed(1)} %`

const sentence = (name: string, unit: Unit, before: number, now: number): string =>
  `${name}: ${shown(now, unit)} ${UNITS[unit]} an operation, ${shown(before, unit)} in the baseline (${
    percent(before, now)
  })`

/** One unit's figures against the baseline's. A case without a baseline is a problem, as is a baseline without a case. */
export const compare = (unit: Unit, baseline: Figures, found: Figures, tolerance = TOLERANCE): Comparison => {
  const problems: Array<string> = []
  const gains: Array<string> = []
  for (const [name, now] of Object.entries(found)) {
    const before = baseline[name]
    if (before === undefined) problems.push(`${name}: has no ${unit} in the baseline`)
    else if (!Number.isFinite(now) || now < 0) problems.push(`${name}: ${now} ${UNITS[unit]} cannot be`)
    else if (now > before * (1 + tolerance) + SLACK[unit]) problems.push(sentence(name, unit, before, now))
    else if (now < before * (1 - tolerance) - SLACK[unit]) gains.push(sentence(name, unit, before, now))
  }
  for (const name of Object.keys(baseline)) {
    if (found[name] === undefined) problems.push(`${name}: is in the baseline, and there is no such case`)
  }
  return { problems, gains }
}

/** All units of `found`; one that the baseline lacks altogether is one problem. */
export const compareAll = (baseline: FiguresOf, found: FiguresOf, tolerance = TOLERANCE): Comparison => {
  const parts = (Object.entries(found) as ReadonlyArray<[Unit, Figures]>).map(([unit, figures]) => {
    const known = baseline[unit]
    return known === undefined
      ? { problems: [`the baseline has no ${unit}: make it with "npm run bench:check -- --update"`], gains: [] }
      : compare(unit, known, figures, tolerance)
  })
  return { problems: parts.flatMap(({ problems }) => problems), gains: parts.flatMap(({ gains }) => gains) }
}
