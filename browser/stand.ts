/** A served page with documents of the test's, and a browser in front of it. */
import { Effect, type Scope } from "effect"
import { type Browser, chromium, type Page } from "playwright-core"
import type { HistoryDocument } from "../src/metrics/history.ts"
import { serveHttp } from "../src/metrics/http.ts"
import type { StatusInput } from "../src/metrics/status.ts"

/** What a browser as root in a closed network needs. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
]

export const launch: Effect.Effect<Browser, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() =>
    chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS })
  ),
  (browser) => Effect.promise(() => browser.close())
)

export interface Stand {
  readonly url: string
  /** What the service says from now on; null: it answers 500. */
  status: StatusInput | null
  history: HistoryDocument
}

export const serve = (
  status: StatusInput,
  history: HistoryDocument
): Effect.Effect<Stand, never, Scope.Scope> =>
  Effect.gen(function*() {
    const now = { status: status as StatusInput | null, history }
    const { url } = yield* Effect.orDie(serveHttp({
      host: "127.0.0.1",
      port: 0,
      status: Effect.suspend(() => now.status === null ? Effect.die(new Error("not now")) : Effect.succeed(now.status)),
      history: () => now.history
    }))
    return Object.assign(now, { url })
  })

export interface Look {
  readonly page: Page
  /** What the browser complained of: script errors, refused policies, files that did not load. */
  readonly complaints: Array<string>
  /** Hosts that were asked. */
  readonly hosts: Set<string>
}

export const DESKTOP = { width: 1280, height: 900 }
export const PHONE = { width: 390, height: 844 }

export const open = (
  browser: Browser,
  url: string,
  look: { readonly scheme: "light" | "dark"; readonly size: typeof DESKTOP }
): Effect.Effect<Look, never, Scope.Scope> =>
  Effect.gen(function*() {
    const context = yield* Effect.acquireRelease(
      Effect.promise(() => browser.newContext({ colorScheme: look.scheme, viewport: look.size, timezoneId: "UTC" })),
      (made) => Effect.promise(() => made.close())
    )
    const page = yield* Effect.promise(() => context.newPage())
    const complaints: Array<string> = []
    const hosts = new Set<string>()
    page.on("pageerror", (error) => complaints.push(error.message))
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complaints.push(message.text())
    })
    page.on("request", (request) => {
      if (!request.url().startsWith("data:")) hosts.add(new URL(request.url()).host)
    })
    yield* Effect.promise(() => page.goto(`${url}/`))
    return { page, complaints, hosts }
  })
