/**
 * Charts as SVG, small and by hand: horizontal bars with their spread, and lines over a logarithmic axis. They carry their
 * own background and colours for light and dark, so they can be read on any page, and a title and a description for those
 * who do not see them.
 */

/** Distinct for colour-blind readers too (Okabe and Ito), on light and on dark. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
const STYLE =
  `text{font:13px system-ui,sans-serif;fill:#1f2328}.b{fill:#fff}.g{stroke:#d0d7de}.w{stroke:#1f2328}.t{font-weight:600}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.g{stroke:#30363d}.w{stroke:#e6edf3}}`

export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")
    .replaceAll("'", "&#39;")

const at = (n: number): string => String(Math.round(n * 10) / 10)

/** Three digits that count, no exponent. */
export const label = (figure: number): string => {
  if (!Number.isFinite(figure)) return "?"
  const places = Math.abs(figure) >= 100 ? 0 : Math.abs(figure) >= 10 ? 1 : 2
  return figure.toFixed(places)
}

interface Frame {
  readonly title: string
  /** What the chart says, in words. */
  readonly description: string
}

const svg = ({ description, title }: Frame, width: number, height: number, body: ReadonlyArray<string>): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${at(height)}" width="${width}" height="${
      at(height)
    }" role="img" aria-labelledby="t d">`,
    `<title id="t">${escapeText(title)}</title><desc id="d">${escapeText(description)}</desc><style>${STYLE}</style>`,
    `<rect class="b" width="${width}" height="${at(height)}" rx="6"/>`,
    `<text class="t" x="16" y="26">${escapeText(title)}</text>`,
    ...body,
    "</svg>\n"
  ].join("\n")

const legend = (names: ReadonlyArray<string>, y: number): ReadonlyArray<string> =>
  names.map((name, n) => {
    const line = y + n * 20
    return `<rect x="16" y="${at(line - 10)}" width="12" height="12" fill="${COLOURS[n % COLOURS.length]}"/>` +
      `<text x="34" y="${at(line)}">${escapeText(name)}</text>`
  })

export interface Bar {
  readonly value: number
  readonly min?: number
  readonly max?: number
}

export interface BarChart extends Frame {
  /** "MB/s" */
  readonly unit: string
  readonly series: ReadonlyArray<string>
  /** Of each group one bar a series, null where there is no figure. */
  readonly groups: ReadonlyArray<{ readonly name: string; readonly bars: ReadonlyArray<Bar | null> }>
}

const WIDTH = 760
const LEFT = 130
const RIGHT = 90
const BAR = 14

export const barChart = (chart: BarChart): string => {
  const top = 50 + chart.series.length * 20
  const most = Math.max(...chart.groups.flatMap(({ bars }) => bars.map((bar) => bar?.max ?? bar?.value ?? 0)), 0)
  const scale = (value: number): number => most === 0 ? 0 : value / most * (WIDTH - LEFT - RIGHT)
  const groupHeight = chart.series.length * (BAR + 2) + 12
  const body: Array<string> = [...legend(chart.series, 50)]
  chart.groups.forEach(({ bars, name }, g) => {
    const y = top + g * groupHeight
    body.push(
      `<text x="${LEFT - 8}" y="${at(y + (groupHeight - 12) / 2 + 4)}" text-anchor="end">${escapeText(name)}</text>`
    )
    bars.forEach((bar, n) => {
      if (bar === null) return
      const own = y + n * (BAR + 2)
      const end = LEFT + scale(bar.value)
      const high = LEFT + scale(bar.max ?? bar.value)
      const middle = own + BAR / 2
      body.push(
        `<rect x="${LEFT}" y="${at(own)}" width="${at(scale(bar.value))}" height="${BAR}" fill="${
          COLOURS[n % COLOURS.length]
        }"/>`,
        `<path class="w" d="M${at(LEFT + scale(bar.min ?? bar.value))} ${at(middle)}H${at(high)}"/>`,
        `<text x="${at(Math.max(end, high) + 6)}" y="${at(own + 11)}">${label(bar.value)} ${
          escapeText(chart.unit)
        }</text>`
      )
    })
  })
  return svg(chart, WIDTH, top + chart.groups.length * groupHeight + 8, body)
}

export interface LineChart extends Frame {
  readonly xName: string
  readonly yName: string
  /** Points in order of x; x above 0, because its axis is logarithmic; y from 0 to 1. */
  readonly lines: ReadonlyArray<
    { readonly name: string; readonly points: ReadonlyArray<readonly [x: number, y: number]> }
  >
}

const HIGH = 260

const tick = (x: number): string => x >= 1 ? String(x) : x.toFixed(1)

export const lineChart = (chart: LineChart): string => {
  const top = 60 + chart.lines.length * 20
  const xs = chart.lines.flatMap(({ points }) => points.map(([x]) => x))
  const [lowest, highest] = [Math.min(...xs), Math.max(...xs)]
  const span = Math.log(highest / lowest) || 1
  const x = (value: number): number => 70 + Math.log(value / lowest) / span * (WIDTH - 110)
  const y = (share: number): number => top + (1 - share) * HIGH
  const body: Array<string> = [...legend(chart.lines.map(({ name }) => name), 50)]
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    body.push(
      `<path class="g" d="M70 ${at(y(share))}H${WIDTH - 40}"/>`,
      `<text x="62" y="${at(y(share) + 4)}" text-anchor="end">${share * 100} %</text>`
    )
  }
  for (const mark of [0.1, 1, 10, 100, 1_000, 10_000].filter((value) => value >= lowest && value <= highest)) {
    body.push(
      `<path class="g" d="M${at(x(mark))} ${at(y(0))}V${at(y(1))}"/>`,
      `<text x="${at(x(mark))}" y="${at(y(0) + 18)}" text-anchor="middle">${tick(mark)}</text>`
    )
  }
  chart.lines.forEach(({ points }, n) => {
    const path = points.map(([px, py], i) => `${i === 0 ? "M" : "L"}${at(x(px))} ${at(y(py))}`).join("")
    body.push(`<path d="${path}" fill="none" stroke="${COLOURS[n % COLOURS.length]}" stroke-width="2"/>`)
  })
  body.push(
    `<text x="${WIDTH / 2}" y="${at(y(0) + 38)}" text-anchor="middle">${escapeText(chart.xName)}</text>`,
    `<text x="16" y="${at(top - 10)}">${escapeText(chart.yName)}</text>`
  )
  return svg(chart, WIDTH, top + HIGH + 52, body)
}
