/** The page: asks /status and /history of its own server again and again, and shows what they say. */
import { byId, setAttribute, setText } from "./dom.js"
import { makeFlow, placeFlows, toneOf } from "./flow.js"
import { clock, many, span } from "./words.js"

/** @import { StatusInput } from "../status.ts" */
/** @import { HistoryDocument } from "../history.ts" */
/** @import { View } from "./flow.js" */

const EVERY_MS = 2_000
const PATIENCE_MS = 10_000

/** @type {Map<string, View>} */
const views = new Map()
/** @type {HistoryDocument | null} */
let history = null
/** What was said to a screen reader last; null: nothing yet, and the first state is no news. @type {string | null} */
let said = null
let answeredAtMs = 0

/**
 * @param {string} path
 * @returns {Promise<unknown>}
 */
const ask = async (path) => {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" })
  if (!answer.ok) throw new Error(`${path} answers ${answer.status}`)
  return answer.json()
}

/** @param {StatusInput} status */
const overall = (status) => {
  const off = status.flows.filter((flow) => flow.state !== "running")
  if (status.flows.length === 0) return { text: "no flow", tone: "idle" }
  if (off.length === 0) {
    return { text: status.flows.length === 1 ? "running" : `all ${status.flows.length} flows run`, tone: "good" }
  }
  const worst = off.some((flow) => toneOf(flow.state) === "bad") ? "bad" : "warn"
  if (status.flows.length === 1) return { text: off[0]?.state ?? "", tone: worst }
  return { text: `${off.length} of ${many(status.flows.length, "flow")} not running`, tone: worst }
}

/** @param {StatusInput} status */
const show = (status) => {
  const nowMs = Date.parse(status.startedAt) + status.uptimeSeconds * 1000
  const { text, tone } = overall(status)
  setText(byId("service"), `${status.service.version}, up for ${span(status.uptimeSeconds)}`)
  setText(byId("overall"), text)
  setAttribute(byId("overall"), "class", `pill ${tone}`)
  document.title = tone === "good" ? "onceover" : `${text} · onceover`
  const names = new Set(status.flows.map((flow) => flow.name))
  for (const name of views.keys()) if (!names.has(name)) views.delete(name)
  for (const flow of status.flows) {
    const view = views.get(flow.name) ?? makeFlow(flow)
    views.set(flow.name, view)
    if (history !== null) view.plot(history, nowMs)
    view.show(flow, nowMs)
  }
  placeFlows(byId("flows"), [...views.values()])
  say(status.flows.map((flow) => `${flow.name} is ${flow.state}`).join(", "))
}

/** Only what changed is worth an interruption. @param {string} words */
const say = (words) => {
  if (said !== null && said !== words) setText(byId("live"), words)
  said = words
}

/** @param {boolean} answers */
const showSilence = (answers) => {
  const banner = byId("silent")
  document.body.classList.toggle("old", !answers)
  if (!answers && banner.hidden) {
    const words = answeredAtMs === 0
      ? "The service does not answer."
      : `The service does not answer. What is shown is of ${clock(answeredAtMs)}.`
    setText(banner, words)
    setText(byId("overall"), "no answer")
    setAttribute(byId("overall"), "class", "pill bad")
    document.title = "no answer · onceover"
    say(words)
  }
  banner.hidden = answers
}

const refresh = async () => {
  try {
    const [status, past] = await Promise.all([ask("status"), ask("history")])
    history = /** @type {HistoryDocument} */ (past)
    show(/** @type {StatusInput} */ (status))
    answeredAtMs = Date.now()
    showSilence(true)
  } catch {
    showSilence(false)
  }
}

const again = async () => {
  // A page that nobody looks at asks nothing.
  if (!document.hidden) await refresh()
  setTimeout(again, EVERY_MS)
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void refresh()
})
void again()
