/**
 * A plot of the last 15 minutes: a curve with an area, a cursor for pointer and arrow keys (to assistive technology a
 * slider whose value is a moment), and the same as a table.
 */
import { element, setAttribute, setText, svg } from "./dom.js"
import { areaPath, linePath, runs, summary, ticks } from "./scale.js"
import { brief, clock } from "./words.js"

const WINDOW_MS = 15 * 60_000
const MINUTE_MS = 60_000
const LEFT = 48
const RIGHT = 10
const TOP = 10
const BOTTOM = 24

/**
 * @typedef {{ readonly times: ReadonlyArray<number>, readonly values: ReadonlyArray<number | null>, readonly nowMs: number }} Data
 * @typedef {{ readonly node: HTMLElement, readonly draw: (data: Data) => void }} Plot
 */

/**
 * @param {{ readonly title: string, readonly of: string, readonly unit: string, readonly kind: "rate" | "behind", readonly word: (n: number) => string }} options
 * @returns {Plot}
 */
export const makePlot = ({ kind, of, title, unit, word }) => {
  const readout = element("span", { class: "readout" })
  const picture = svg("svg", {
    role: "slider",
    tabindex: 0,
    "aria-label": `${title} of ${of}, last 15 minutes`,
    "aria-valuemin": 0,
    "aria-orientation": "horizontal"
  })
  const rows = element("tbody")
  const node = element("figure", { class: `plot ${kind}` }, [
    element("figcaption", {}, [element("h3", {}, [title]), readout]),
    picture,
    asTable(title, of, unit, rows)
  ])
  /** @type {Data} */
  let data = { times: [], values: [], nowMs: 0 }
  /** The moment that was pointed at; null: none, the latest is told. @type {number | null} */
  let chosen = null
  const size = { width: 600, height: 176 }

  const spot = (/** @type {number} */ n) => {
    const x = LEFT + (1 - (data.nowMs - (data.times[n] ?? 0)) / WINDOW_MS) * (size.width - LEFT - RIGHT)
    return Math.max(LEFT, Math.min(size.width - RIGHT, x))
  }
  const index = () => {
    if (chosen === null) return data.times.length - 1
    const found = data.times.findIndex((time) => time >= (chosen ?? 0))
    return found === -1 ? data.times.length - 1 : found
  }
  const told = (/** @type {number} */ n) => {
    const value = data.values[n]
    const time = data.times[n]
    if (time === undefined) return "no readings yet"
    return `${clock(time)}: ${value === null || value === undefined ? "unknown" : `${word(value)} ${unit}`}`
  }

  const render = () => {
    const floor = size.height - BOTTOM
    const lines = ticks(Math.max(0, ...data.values.map((value) => value ?? 0)))
    const top = lines[lines.length - 1] ?? 1
    const height = (/** @type {number} */ value) => floor - value / top * (floor - TOP)
    /** @type {Array<SVGElement>} */
    const parts = []
    for (const line of lines) {
      const y = Math.round(height(line))
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: size.width - RIGHT, y1: y, y2: y }))
      parts.push(svg("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, brief(line)))
    }
    for (const minutes of [15, 10, 5, 0]) {
      const x = LEFT + (1 - minutes / 15) * (size.width - LEFT - RIGHT)
      const anchor = minutes === 0 ? "end" : minutes === 15 ? "start" : "middle"
      const words = minutes === 0 ? "now" : size.width < 420 ? `-${minutes} min` : `${minutes} min ago`
      parts.push(svg("text", { x, y: size.height - 6, "text-anchor": anchor }, words))
    }
    const points = data.values.map((value, n) => value === null ? null : { x: spot(n), y: height(value) })
    for (const run of runs(points)) {
      parts.push(svg("path", { class: "area", d: areaPath(run, floor) }))
      parts.push(svg("path", { class: "curve", d: linePath(run) }))
    }
    const n = index()
    const point = points[n] ?? null
    if (chosen !== null && data.times.length > 0) {
      parts.push(svg("line", { class: "cursor", x1: spot(n), x2: spot(n), y1: TOP, y2: floor }))
    }
    if (point !== null) parts.push(svg("circle", { class: "dot", cx: point.x, cy: point.y, r: 4 }))
    picture.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`)
    picture.replaceChildren(...parts)
    setText(readout, chosen === null ? summary(data.values, word) : told(n))
    setAttribute(picture, "aria-valuemax", String(Math.max(0, data.times.length - 1)))
    setAttribute(picture, "aria-valuenow", String(Math.max(0, n)))
    setAttribute(picture, "aria-valuetext", chosen === null ? summary(data.values, word) : told(n))
  }

  watchPointer(picture, size, (x) => {
    if (x === null || data.times.length === 0) chosen = null
    else {
      const wanted = data.nowMs - (1 - (x - LEFT) / (size.width - LEFT - RIGHT)) * WINDOW_MS
      chosen = data.times.reduce((best, time) => Math.abs(time - wanted) < Math.abs(best - wanted) ? time : best)
    }
    render()
  })
  watchKeys(picture, (move) => {
    const last = data.times.length - 1
    if (move === null || last < 0) chosen = null
    else chosen = data.times[Math.max(0, Math.min(last, index() + move))] ?? null
    render()
  })
  new ResizeObserver(([entry]) => {
    if (entry === undefined || entry.contentRect.width === 0) return
    size.width = entry.contentRect.width
    size.height = entry.contentRect.height
    render()
  }).observe(picture)

  return {
    node,
    draw: (next) => {
      data = next
      render()
      fillTable(rows, next, word)
    }
  }
}

/**
 * @param {string} title
 * @param {string} of
 * @param {string} unit
 * @param {HTMLElement} rows
 */
const asTable = (title, of, unit, rows) => {
  const caption = element("caption", { class: "unseen" }, [`${title} of ${of} by the minute, newest first`])
  const head = element("thead", {}, [
    element("tr", {}, [
      element("th", { scope: "col" }, ["Time"]),
      element("th", { scope: "col", class: "number" }, [`Mean (${unit})`]),
      element("th", { scope: "col", class: "number" }, [`Highest (${unit})`])
    ])
  ])
  return element("details", {}, [
    element("summary", {}, ["As a table", element("span", { class: "unseen" }, [`: ${title} of ${of}`])]),
    element("div", { class: "small", tabindex: "0", role: "region", "aria-label": `${title} of ${of} as a table` }, [
      element("table", {}, [caption, head, rows])
    ])
  ])
}

/**
 * @param {HTMLTableSectionElement} rows
 * @param {Data} data
 * @param {(n: number) => string} word
 */
const fillTable = (rows, { times, values }, word) => {
  /** @type {Map<number, Array<number>>} */
  const minutes = new Map()
  times.forEach((time, n) => {
    const minute = Math.floor(time / MINUTE_MS) * MINUTE_MS
    const value = values[n]
    const known = minutes.get(minute) ?? []
    minutes.set(minute, value === null || value === undefined ? known : [...known, value])
  })
  const shown = [...minutes].toReversed().map(([minute, known]) => {
    const mean = known.length === 0 ? "unknown" : word(known.reduce((sum, n) => sum + n, 0) / known.length)
    const highest = known.length === 0 ? "unknown" : word(Math.max(...known))
    return [clock(minute).slice(0, 5), mean, highest]
  })
  while (rows.rows.length > shown.length) rows.deleteRow(-1)
  shown.forEach((cells, n) => {
    const row = rows.rows[n] ?? rows.insertRow()
    cells.forEach((text, c) => {
      const cell = row.cells[c] ??
        row.appendChild(c === 0 ? element("th", { scope: "row" }) : element("td", { class: "number" }))
      setText(cell, text)
    })
  })
}

/**
 * @param {SVGSVGElement} picture
 * @param {{ readonly width: number }} size
 * @param {(x: number | null) => void} point
 */
const watchPointer = (picture, size, point) => {
  const moved = (/** @type {PointerEvent} */ event) => {
    const box = picture.getBoundingClientRect()
    point((event.clientX - box.left) / box.width * size.width)
  }
  picture.addEventListener("pointermove", moved)
  picture.addEventListener("pointerdown", moved)
  picture.addEventListener("pointerleave", () => point(null))
}

/** @type {Readonly<Record<string, number>>} */
const MOVES = {
  ArrowLeft: -1,
  ArrowDown: -1,
  ArrowRight: 1,
  ArrowUp: 1,
  PageDown: -12,
  PageUp: 12,
  Home: -Infinity,
  End: Infinity
}

/**
 * @param {SVGSVGElement} picture
 * @param {(points: number | null) => void} move null: let go
 */
const watchKeys = (picture, move) => {
  picture.addEventListener("keydown", (event) => {
    const points = event.key === "Escape" ? null : MOVES[event.key]
    if (points === undefined) return
    event.preventDefault()
    move(points)
  })
  picture.addEventListener("blur", () => move(null))
}
