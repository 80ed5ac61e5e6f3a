/**
 * The page for people at "/": the flows, what holds and why, and what does not move. One document, no network but
 * /status of the same server, light and dark, and readable by a screen reader (a table with headers, a live region
 * for what changed).
 */
import { createHash } from "node:crypto"

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: color-mix(in srgb, currentColor 25%, transparent); --bad: light-dark(#a40000, #ff9a9a); --good: light-dark(#005f2b, #8be0a8); }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.25rem; }
p { margin: 0.25rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid var(--line); }
th[scope="col"] { font-weight: 600; }
.number { text-align: right; }
.bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); font-weight: 600; }
`

const SCRIPT = `
const el = (tag, text, cls) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; if (cls) e.className = cls; return e }
const number = new Intl.NumberFormat()
const shown = (n) => n === null ? "unknown" : number.format(Math.round(n))
const table = (flow) => {
  const t = el("table")
  t.append(el("caption", "Partitions of " + flow.name))
  const head = el("tr")
  for (const [name, cls] of [["Partition"], ["Target topic"], ["Position", "number"], ["Lag", "number"], ["Records/s", "number"], ["State"]]) {
    const th = el("th", name, cls); th.scope = "col"; head.append(th)
  }
  const body = el("tbody")
  for (const p of flow.partitions) {
    const row = el("tr")
    const th = el("th", p.topic + "-" + p.partition); th.scope = "row"
    row.append(th, el("td", p.targetTopic), el("td", shown(p.position), "number"), el("td", shown(p.lag), "number"), el("td", shown(p.rate), "number"), el("td", p.state + (p.reason ? ": " + p.reason : ""), p.state === "blocked" ? "bad" : ""))
    body.append(row)
  }
  const thead = el("thead"); thead.append(head); t.append(thead, body)
  const scroll = el("div", undefined, "scroll"); scroll.tabIndex = 0; scroll.setAttribute("role", "region"); scroll.setAttribute("aria-label", "Partitions of " + flow.name); scroll.append(t)
  return scroll
}
const section = (flow) => {
  const s = el("section")
  s.append(el("h2", flow.name + ": " + flow.source + " to " + flow.target))
  const state = el("p", "State: "); state.append(el("span", flow.state, flow.state === "running" ? "good" : "bad")); if (flow.reason) state.append(", " + flow.reason)
  const g = flow.guarantee
  const holds = el("p", "Guarantee: "); holds.append(el("span", g.effective ?? "not known yet", g.effective === g.wanted ? "good" : "bad"), " (wanted: " + g.wanted + ")")
  s.append(state, holds)
  for (const reason of g.reasons) s.append(el("p", reason))
  s.append(el("p", flow.mode + " group, " + flow.lanes + " lanes, " + shown(flow.totals.recordsMirrored) + " records mirrored"), table(flow))
  return s
}
let said = ""
const refresh = async () => {
  const live = document.getElementById("live")
  try {
    const status = await (await fetch("status")).json()
    document.getElementById("service").textContent = status.service.name + " " + status.service.version + ", up for " + shown(status.uptimeSeconds) + " s"
    document.getElementById("flows").replaceChildren(...status.flows.map(section))
    const now = status.flows.map((f) => f.name + " is " + f.state).join(", ")
    if (now !== said) { said = now; live.textContent = now }
  } catch { said = ""; live.textContent = "The service does not answer." }
}
refresh()
setInterval(refresh, 2000)
`

const hash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

/** Only what is in the page itself may run in it. */
export const PAGE_POLICY = `default-src 'none'; script-src ${hash(SCRIPT)}; style-src ${
  hash(STYLE)
}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>onceover</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>onceover</h1><p id="service"></p><p id="live" role="status" aria-live="polite"></p></header>
<main id="flows"><noscript>This page needs JavaScript; the same data is at <a href="status">/status</a>.</noscript></main>
<footer><p><a href="status">status</a>, <a href="metrics">metrics</a>, <a href="health/ready">readiness</a></p></footer>
<script>${SCRIPT}</script>
</body>
</html>
`
