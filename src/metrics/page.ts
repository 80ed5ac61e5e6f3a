/**
 * The page for people at "/": the flows, what holds and why, what moves and what does not. Its files are in
 * src/metrics/page and run in the browser as they are: no build, nothing from another host, so it works without
 * internet. Light and dark, by keyboard, with a screen reader, on a phone.
 */
import { readFileSync } from "node:fs"

/** Only what this server serves runs in the page; no inline script or style, and no text that becomes markup. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join("; ")

const SCRIPTS = ["main.js", "flow.js", "partitions.js", "plot.js", "scale.js", "words.js", "dom.js"]

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8"
}

export interface PageFile {
  readonly type: string
  readonly body: string
}

const file = (name: string): PageFile => ({
  type: TYPES[name.slice(name.lastIndexOf(".") + 1)] as string,
  body: readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8")
})

/** By path. */
export const PAGE_FILES: Readonly<Record<string, PageFile>> = {
  "/": file("index.html"),
  ...Object.fromEntries(["style.css", ...SCRIPTS].map((name) => [`/page/${name}`, file(name)]))
}
