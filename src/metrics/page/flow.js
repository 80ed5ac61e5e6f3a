/** One flow: its state and why, the guarantee and why, numbers, plots, partitions. */
import { element, setAttribute, setChildren, setText } from "./dom.js"
import { makePartitions } from "./partitions.js"
import { makePlot } from "./plot.js"
import { brief, bytes, count, latency, many, rate, span } from "./words.js"

/** @import { StatusInput } from "../status.ts" */
/** @import { HistoryDocument } from "../history.ts" */
/** @typedef {StatusInput["flows"][number]} Flow */
/** @typedef {{ readonly node: HTMLElement, readonly show: (flow: Flow, nowMs: number) => void, readonly plot: (history: HistoryDocument, nowMs: number) => void }} View */

/** @param {string} state */
export const toneOf = (state) =>
  state === "running"
    ? "good"
    : state === "blocked" || state === "failed"
    ? "bad"
    : state === "stopped"
    ? "idle"
    : "warn"

/** Blocked partitions that are named one by one. */
const NAMED = 10

/** @typedef {{ readonly node: HTMLElement, readonly set: (value: string, more: string) => void }} Tile */

/**
 * @param {string} title
 * @returns {Tile}
 */
const makeTile = (title) => {
  const value = element("dd")
  const more = element("dd", { class: "more" })
  return {
    node: element("div", { class: "tile" }, [element("dt", {}, [title]), value, more]),
    set: (text, below) => {
      setText(value, text)
      setText(more, below)
    }
  }
}

/** Sums since the start that a reader may look for, by their words. @type {ReadonlyArray<readonly [string, (totals: Flow["totals"]) => number, "share" | "both"]>} */
const TOTALS = [
  ["Records acquired", (t) => t.recordsAcquired, "share"],
  ["Records acknowledged", (t) => t.recordsAcknowledged, "share"],
  ["Records delivered again", (t) => t.recordsRedelivered, "share"],
  ["Records released", (t) => t.recordsReleased, "share"],
  ["Records rejected", (t) => t.recordsRejected, "share"],
  ["Records repaired", (t) => t.recordsRepaired, "share"],
  ["Transactions aborted", (t) => t.transactionsAborted, "both"],
  ["Transactions fenced", (t) => t.transactionsFenced, "both"],
  ["Records skipped on purpose", (t) => t.recordsSkipped, "both"],
  ["Records to the dead-letter topic", (t) => t.deadLetters, "both"],
  ["Records gone from the source", (t) => t.sourceGapRecords, "both"]
]

/** @param {"share" | "consumer"} mode */
const makeTotals = (mode) => {
  const lines = TOTALS.filter(([, , only]) => only === "both" || only === mode).map(([title, of]) => {
    const value = element("dd")
    return { title, node: element("div", {}, [element("dt", {}, [title]), value]), value, of }
  })
  const none = element("p", { class: "quiet" })
  return {
    node: element("div", { class: "totals" }, [element("dl", {}, lines.map(({ node }) => node)), none]),
    show: (/** @type {Flow["totals"]} */ totals) => {
      for (const { node, of, value } of lines) {
        setText(value, count(of(totals)))
        node.hidden = of(totals) === 0
      }
      const zero = lines.filter(({ of }) => of(totals) === 0).map(({ title }) => title.toLowerCase())
      none.hidden = zero.length === 0 || zero.length === lines.length
      setText(none, `None since the start: ${zero.join(", ")}.`)
    }
  }
}

const makeGuarantee = () => {
  const name = element("span", { class: "name" })
  const more = element("span")
  const reasons = element("ul")
  return {
    node: element("div", { class: "guarantee" }, [
      element("p", {}, [element("span", { class: "unseen" }, ["Guarantee in force: "]), name, " ", more]),
      reasons
    ]),
    show: (/** @type {Flow["guarantee"]} */ { binding, effective, reasons: why, wanted }) => {
      setText(name, effective ?? "guarantee not known yet")
      setAttribute(name, "class", `name ${effective === null ? "" : effective === wanted ? "good" : "warn"}`)
      setText(
        more,
        effective === null
          ? `(wanted: ${wanted})`
          : effective !== wanted
          ? `is in force, ${wanted} is wanted:`
          : binding === "ledger"
          ? "is in force: records and a note of their origin are committed in one transaction on the target (ledger)"
          : binding === "kip-1289"
          ? "is in force: output and acknowledgement are one transaction (KIP-1289)"
          : "is in force"
      )
      reasons.replaceChildren(...why.map((reason) => element("li", {}, [reason])))
    }
  }
}

/** What keeps topics, settings and rights in step; a problem there stops no record, but somebody should know. */
const makeControl = () => {
  const node = element("div", { class: "control" })
  return {
    node,
    show: (/** @type {NonNullable<Flow["control"]>} */ tasks) => {
      const words = tasks.map(({ state, task }) => `${task} ${state === "elsewhere" ? "by another process" : state}`)
      const problems = tasks.filter(({ reasons, state }) => state === "problem" && reasons.length > 0)
      node.hidden = tasks.length === 0
      node.replaceChildren(
        element("p", { class: "quiet" }, [`Control tasks: ${words.join(", ")}`]),
        ...problems.map(({ reasons, task }) =>
          element("div", { class: "banner warn" }, [
            element("p", {}, [element("strong", {}, [task])]),
            element("ul", {}, reasons.map((reason) => element("li", {}, [reason])))
          ])
        )
      )
    }
  }
}

/** @param {Flow} flow */
const throughput = (flow) => flow.partitions.reduce((sum, p) => sum + p.rate, 0)

/** @param {Flow} flow */
const lagOf = (flow) => {
  const known = flow.partitions.flatMap((p) => p.lag === null ? [] : [p.lag])
  return known.length === 0 ? null : known.reduce((sum, lag) => sum + lag, 0)
}

/** The slowest partition's, of those that move. @param {Flow} flow */
const latencyOf = (flow) => {
  const moving = flow.partitions.filter((p) => p.rate > 0)
  const known = (moving.length > 0 ? moving : flow.partitions).flatMap((p) => p.latencySeconds ?? [])
  return known.length === 0 ? null : Math.max(...known)
}

/** @param {Flow} flow @param {HTMLElement} banner */
const showTrouble = (flow, banner) => {
  const blocked = flow.partitions.filter((p) => p.state !== "running")
  banner.hidden = flow.reason === null && blocked.length === 0
  if (banner.hidden) return banner.replaceChildren()
  setAttribute(banner, "class", `banner ${toneOf(flow.state) === "warn" && blocked.length === 0 ? "warn" : "bad"}`)
  const lines = blocked.slice(0, NAMED).map((p) =>
    element("li", {}, [element("strong", {}, [`${p.topic}-${p.partition}`]), `: ${p.reason ?? p.state}`])
  )
  if (blocked.length > NAMED) lines.push(element("li", {}, [`and ${many(blocked.length - NAMED, "more partition")}`]))
  const listed = blocked.length > 0 && flow.state === "blocked"
  banner.replaceChildren(
    ...(flow.reason !== null && !listed ? [element("p", {}, [flow.reason])] : []),
    ...(blocked.length > 0
      ? [element("p", {}, [`${many(blocked.length, "partition")} blocked:`]), element("ul", {}, lines)]
      : [])
  )
}

/**
 * @param {Flow} flow
 * @returns {View}
 */
export const makeFlow = ({ mode, name }) => {
  const route = element("p", { class: "quiet" })
  const state = element("p", { class: "pill" })
  const banner = element("div", { class: "banner" })
  const guarantee = makeGuarantee()
  const control = makeControl()
  const tiles = {
    rate: makeTile("Throughput"),
    lag: makeTile("Lag"),
    latency: makeTile("Latency"),
    mirrored: makeTile("Mirrored"),
    transactions: makeTile("Transactions"),
    duplicates: makeTile("Duplicates prevented")
  }
  const records = makePlot({ title: "Throughput", of: name, unit: "records/s", kind: "rate", word: rate })
  const lag = makePlot({ title: "Lag", of: name, unit: "records", kind: "behind", word: count })
  const totals = makeTotals(mode)
  const partitions = makePartitions(name)
  const plots = element("div", { class: "plots" }, [records.node, lag.node])
  const heading = element("h2", {}, [name])
  const node = element("section", { class: "flow", "aria-label": `Flow ${name}` }, [
    element("header", {}, [element("div", {}, [heading, route]), state]),
    banner,
    guarantee.node,
    control.node,
    element("dl", { class: "tiles" }, Object.values(tiles).map((tile) => tile.node)),
    plots,
    totals.node,
    partitions.node
  ])
  let bytesPerSecond = ""
  return {
    node,
    show: (flow, nowMs) => {
      setText(route, `${flow.source} → ${flow.target}, ${flow.mode} group, ${many(flow.lanes, "lane")}`)
      setText(state, `${flow.state} for ${span((nowMs - Date.parse(flow.since)) / 1000)}`)
      setAttribute(state, "class", `pill ${toneOf(flow.state)}`)
      showTrouble(flow, banner)
      guarantee.show(flow.guarantee)
      control.show(flow.control ?? [])
      const t = flow.totals
      const behind = flow.partitions.filter((p) => p.lag !== null && p.lag > 0).length
      tiles.rate.set(`${rate(throughput(flow))}/s`, bytesPerSecond)
      tiles.lag.set(brief(lagOf(flow)), `records, in ${many(behind, "partition")}`)
      tiles.latency.set(latency(latencyOf(flow)), "of what was mirrored last")
      tiles.mirrored.set(brief(t.recordsMirrored), `records, ${bytes(t.bytesMirrored)}`)
      tiles.transactions.set(brief(t.transactionsCommitted), `committed, ${count(t.transactionsAborted)} aborted`)
      tiles.duplicates.set(brief(t.duplicatesPrevented), "deliveries that were done already")
      totals.show(t)
      partitions.show(flow.partitions)
    },
    plot: (history, nowMs) => {
      const found = history.flows.find((flow) => flow.name === name)
      // A flow that never ran has nothing to plot.
      plots.hidden = found === undefined ||
        found.lag.every((n) => n === null) && found.recordsPerSecond.every((n) => !n)
      const last = found?.bytesPerSecond.findLast((n) => n !== null)
      bytesPerSecond = last === undefined || last === null ? "" : `${bytes(last)}/s`
      records.draw({ times: history.times, values: found?.recordsPerSecond ?? history.times.map(() => null), nowMs })
      lag.draw({ times: history.times, values: found?.lag ?? history.times.map(() => null), nowMs })
    }
  }
}

/** @param {HTMLElement} main @param {ReadonlyArray<View>} views */
export const placeFlows = (main, views) => setChildren(main, views.map((view) => view.node))
