/** The partitions of a flow: a table that can be sorted and filtered, rows kept from refresh to refresh. */
import { element, setAttribute, setChildren, setText } from "./dom.js"
import { count, latency, many, rate } from "./words.js"

/** @import { StatusInput } from "../status.ts" */
/** @typedef {StatusInput["flows"][number]["partitions"][number]} Partition */

/** Rows at first; a button shows the rest. */
const FIRST_ROWS = 12
/** From so many partitions on there is a filter. */
const FILTER_FROM = 12

const nameOf = (/** @type {Partition} */ p) => `${p.topic}-${p.partition}`
const byName = (/** @type {Partition} */ a, /** @type {Partition} */ b) =>
  a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1
const number = (/** @type {(p: Partition) => number | null} */ of) =>
(
  /** @type {Partition} */ a,
  /** @type {Partition} */ b
) => (of(a) ?? -1) - (of(b) ?? -1)

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {string} style
 * @property {(p: Partition) => string} text
 * @property {(a: Partition, b: Partition) => number} order
 */
/** @type {ReadonlyArray<Column>} */
const COLUMNS = [
  { title: "Partition", style: "", text: nameOf, order: byName },
  {
    title: "Target topic",
    style: "wide",
    text: (p) => p.targetTopic,
    order: (a, b) => a.targetTopic < b.targetTopic ? -1 : a.targetTopic > b.targetTopic ? 1 : 0
  },
  { title: "Position", style: "number wide", text: (p) => count(p.position), order: number((p) => p.position) },
  { title: "Lag", style: "number", text: (p) => count(p.lag), order: number((p) => p.lag) },
  { title: "Records/s", style: "number", text: (p) => rate(p.rate), order: number((p) => p.rate) },
  {
    title: "Latency",
    style: "number wide",
    text: (p) => latency(p.latencySeconds),
    order: number((p) => p.latencySeconds)
  },
  {
    title: "State",
    style: "state",
    text: (p) => p.state,
    order: (a, b) => (a.state === "running" ? 1 : 0) - (b.state === "running" ? 1 : 0)
  }
]

/**
 * @param {string} flow
 * @returns {{ readonly node: HTMLElement, readonly show: (partitions: ReadonlyArray<Partition>) => void }}
 */
export const makePartitions = (flow) => {
  const title = element("h3")
  const filter = element("input", { type: "search", autocomplete: "off", spellcheck: "false" })
  const label = element("label", {}, [`Filter partitions of ${flow}`, filter])
  const more = element("button", { class: "more-rows", type: "button" })
  const heads = COLUMNS.map(({ style, title: name }) =>
    element("th", { scope: "col", class: style }, [element("button", { type: "button" }, [name])])
  )
  const body = element("tbody")
  const table = element("table", {}, [
    element("caption", { class: "unseen" }, [`Partitions of ${flow}`]),
    element("thead", {}, [element("tr", {}, heads)]),
    body
  ])
  const scroll = element("div", {
    class: "scroll",
    tabindex: "0",
    role: "region",
    "aria-label": `Partitions of ${flow}`
  }, [
    table
  ])
  const node = element("div", {}, [element("div", { class: "bar" }, [title, label]), scroll, more])
  const view = { column: 0, down: false, all: false, filter: "" }
  /** @type {Map<string, HTMLTableRowElement>} */
  const rows = new Map()
  /** @type {ReadonlyArray<Partition>} */
  let known = []

  const render = () => {
    const order = COLUMNS[view.column]?.order ?? byName
    const found = known
      .filter((p) => view.filter === "" || nameOf(p).includes(view.filter) || p.targetTopic.includes(view.filter))
      .toSorted((a, b) => (view.down ? order(b, a) : order(a, b)) || byName(a, b))
    const shown = view.all ? found : found.slice(0, FIRST_ROWS)
    setChildren(body, shown.map((p) => fill(rows, p)))
    heads.forEach((head, n) =>
      setAttribute(head, "aria-sort", n !== view.column ? "none" : view.down ? "descending" : "ascending")
    )
    const all = known.length === 0 ? "No partitions yet" : many(known.length, "partition")
    setText(title, found.length === known.length ? all : `${found.length} of ${all}`)
    label.hidden = known.length < FILTER_FROM
    more.hidden = found.length <= FIRST_ROWS
    setText(more, view.all ? `Show the first ${FIRST_ROWS}` : `Show all ${found.length}`)
    scroll.hidden = known.length === 0
  }

  heads.forEach((head, n) =>
    head.addEventListener("click", () => {
      // Numbers are of interest from the largest on.
      view.down = view.column === n ? !view.down : (COLUMNS[n]?.style.includes("number") ?? false)
      view.column = n
      render()
    })
  )
  filter.addEventListener("input", () => {
    view.filter = filter.value.trim()
    render()
  })
  more.addEventListener("click", () => {
    view.all = !view.all
    render()
  })

  return {
    node,
    show: (partitions) => {
      known = partitions
      const names = new Set(partitions.map(nameOf))
      for (const name of rows.keys()) if (!names.has(name)) rows.delete(name)
      render()
    }
  }
}

/**
 * @param {Map<string, HTMLTableRowElement>} rows
 * @param {Partition} p
 */
const fill = (rows, p) => {
  const name = nameOf(p)
  const row = rows.get(name) ??
    element(
      "tr",
      {},
      COLUMNS.map(({ style }, n) => n === 0 ? element("th", { scope: "row" }) : element("td", { class: style }))
    )
  rows.set(name, row)
  COLUMNS.forEach(({ style, text }, n) => {
    const cell = row.cells[n]
    if (cell === undefined) return
    if (style === "state") fillState(cell, p)
    else setText(cell, text(p))
  })
  return row
}

/**
 * @param {HTMLTableCellElement} cell
 * @param {Partition} p
 */
const fillState = (cell, p) => {
  setAttribute(cell, "class", p.state === "running" ? "state" : "state bad")
  const why = p.reason === null ? "" : `: ${p.reason}`
  if (cell.textContent === p.state + why) return
  // On a phone the reason stands above the table only.
  cell.replaceChildren(p.state, element("span", { class: "why" }, [why]))
}
