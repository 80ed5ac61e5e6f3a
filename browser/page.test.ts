/** What a person sees and can do on the page at "/". */
import { assert, layer } from "@effect/vitest"
import axe from "axe-core"
import { Context, Effect, Layer } from "effect"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import type { Browser, Page } from "playwright-core"
import { HEALTHY, TROUBLED, TROUBLED_HISTORY } from "../test/kit/statusDocuments.ts"
import { until } from "../test/kit/until.ts"
import { DESKTOP, launch, open, PHONE, serve } from "./stand.ts"

class Chromium extends Context.Service<Chromium, Browser>()("test/Chromium") {
  static readonly layer = Layer.effect(Chromium, launch)
}

const pictures = join(import.meta.dirname, "../.work/page")

const promised = <A>(of: () => Promise<A>) => Effect.promise(of)

const waited = (what: string, condition: () => Promise<boolean>) => promised(() => until(condition, { what }))

const opened = (look: Parameters<typeof open>[2]) =>
  Effect.gen(function*() {
    const stand = yield* serve(TROUBLED, TROUBLED_HISTORY)
    const shown = yield* open(yield* Chromium, stand.url, look)
    yield* promised(() => shown.page.waitForSelector(".tiles"))
    return { stand, ...shown }
  })

/** What breaks the rules of WCAG 2.2 A and AA and good practice, a line each. */
const violations = (page: Page) =>
  promised(async () => {
    await page.evaluate(axe.source)
    const found = await page.evaluate(`axe.run(document, { resultTypes: ["violations"] })`) as axe.AxeResults
    return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")}`))
  })

const focused = (page: Page) =>
  promised(() => page.evaluate("document.activeElement?.getAttribute('aria-label') ?? ''"))

layer(Chromium.layer)("the page", (it) => {
  for (const scheme of ["light", "dark"] as const) {
    for (const [name, size] of [["desktop", DESKTOP], ["phone", PHONE]] as const) {
      it.effect(`in the ${scheme} on a ${name} breaks no rule of accessibility, asks no other host and fits its width`, () =>
        Effect.scoped(Effect.gen(function*() {
          const { complaints, hosts, page, stand } = yield* opened({ scheme, size })
          mkdirSync(pictures, { recursive: true })
          yield* promised(() => page.screenshot({ path: join(pictures, `${name}-${scheme}.png`), fullPage: true }))
          assert.deepStrictEqual(yield* violations(page), [])
          assert.deepStrictEqual(complaints, [])
          assert.deepStrictEqual([...hosts], [new URL(stand.url).host])
          const wide = yield* promised(() => page.evaluate("document.documentElement.scrollWidth"))
          assert.strictEqual(wide, size.width)
          const back = yield* promised(() => page.evaluate("getComputedStyle(document.body).backgroundColor"))
          assert.strictEqual(back, scheme === "light" ? "rgb(244, 246, 248)" : "rgb(16, 20, 24)")
        })))
    }
  }

  it.effect("says what is blocked and why, what holds and why not more, and what cannot start", () =>
    Effect.scoped(Effect.gen(function*() {
      const { page } = yield* opened({ scheme: "light", size: DESKTOP })
      const text = (selector: string) => promised(() => page.locator(selector).innerText())
      const audit = yield* text("section[aria-label='Flow audit to west']")
      assert.include(audit, "1 partition blocked")
      assert.include(audit, "MESSAGE_TOO_LARGE")
      assert.include(audit, "at-least-once is in force, exactly-once is wanted")
      assert.include(audit, "may not write the transactional id")
      assert.include(yield* text("section[aria-label='Flow clicks to west']"), "connection refused")
      const orders = yield* text("section[aria-label='Flow orders to west']")
      for (const part of ["12.2K", "488K", "17", "Show all 36"]) assert.include(orders, part)
      assert.strictEqual(yield* promised(() => page.title()), "2 of 3 flows not running · onceover")
    })))

  it.effect("lets the plots be read by keyboard: a slider that says the moment and its value, and a table", () =>
    Effect.scoped(Effect.gen(function*() {
      const { page } = yield* opened({ scheme: "light", size: DESKTOP })
      const plot = page.getByRole("slider", { name: "Lag of audit to west, last 15 minutes" })
      const value = () => promised(() => plot.getAttribute("aria-valuetext"))
      assert.match(String(yield* value()), /^now 35,990, lowest 0, highest 35,990/)
      yield* promised(() => plot.focus())
      yield* promised(() => page.keyboard.press("End"))
      assert.strictEqual(yield* value(), "01:06:40: 35,990 records")
      yield* promised(() => page.keyboard.press("ArrowLeft"))
      assert.strictEqual(yield* value(), "01:06:35: 35,380 records")
      yield* promised(() => page.keyboard.press("Home"))
      assert.strictEqual(yield* value(), "00:51:45: 3 records")
      yield* promised(() => page.keyboard.press("Escape"))
      assert.match(String(yield* value()), /^now/)
      const section = page.locator("section[aria-label='Flow audit to west'] .plot.behind")
      yield* promised(() => section.locator("summary").click())
      const rows = yield* promised(() => section.locator("tbody tr").allInnerTexts())
      assert.lengthOf(rows, 16)
      assert.match(rows[0] ?? "", /^01:06\s+33,550\s+35,990$/)
    })))

  it.effect("keeps focus, filter and order over refreshes, and takes in what is new", () =>
    Effect.scoped(Effect.gen(function*() {
      const { page, stand } = yield* opened({ scheme: "light", size: DESKTOP })
      const orders = page.locator("section[aria-label='Flow orders to west']")
      const firstText = () => orders.locator(".scroll tbody tr").first().innerText()
      const first = () => promised(firstText)
      yield* promised(() => orders.getByRole("button", { name: "Lag" }).click())
      assert.match(yield* first(), /^orders-11\s/)
      yield* promised(() => orders.getByRole("searchbox").fill("payments"))
      assert.match(yield* first(), /^payments\.settled-0\s/)
      const [busy] = HEALTHY.flows
      if (busy === undefined) return assert.fail("no flow")
      stand.status = {
        ...HEALTHY,
        flows: [{
          ...busy,
          partitions: busy.partitions.map((p) =>
            p.topic === "payments.settled" && p.partition === 7 ? { ...p, lag: 77 } : p
          )
        }]
      }
      yield* waited(
        "the row with the new lag to be the first",
        async () => (await firstText()).startsWith("payments.settled-7")
      )
      assert.strictEqual(yield* promised(() => page.evaluate("document.activeElement?.tagName")), "INPUT")
      assert.strictEqual(yield* promised(() => page.locator("section.flow").count()), 1)
      assert.strictEqual(yield* promised(() => page.title()), "onceover")
      // Said once, to those who cannot see it.
      assert.strictEqual(yield* promised(() => page.locator("#live").innerText()), "orders to west is running")
    })))

  it.effect("says when the service does not answer, from when on what is shown is, and when it answers again", () =>
    Effect.scoped(Effect.gen(function*() {
      const { page, stand } = yield* opened({ scheme: "dark", size: PHONE })
      const silent = page.locator("#silent")
      stand.status = null
      yield* waited("the banner", () => silent.isVisible())
      assert.match(yield* promised(() => silent.innerText()), /^The service does not answer. What is shown is of \d\d:/)
      assert.deepStrictEqual(yield* violations(page), [])
      assert.isTrue(yield* promised(() => page.locator("section.flow").first().isVisible()))
      stand.status = HEALTHY
      yield* waited("the banner to go", () => silent.isHidden())
    })))

  it.effect("is walked through by Tab in the order of the eye, from a link that skips to the flows", () =>
    Effect.scoped(Effect.gen(function*() {
      const { page } = yield* opened({ scheme: "light", size: DESKTOP })
      yield* promised(() => page.keyboard.press("Tab"))
      assert.strictEqual(yield* promised(() => page.evaluate("document.activeElement?.textContent")), "To the flows")
      yield* promised(() => page.keyboard.press("Tab"))
      assert.strictEqual(yield* focused(page), "Throughput of orders to west, last 15 minutes")
    })))

  it.effect("shows a name as the text it is, whatever markup it holds", () =>
    Effect.scoped(Effect.gen(function*() {
      const { complaints, page, stand } = yield* opened({ scheme: "light", size: DESKTOP })
      const [busy] = HEALTHY.flows
      if (busy === undefined) return assert.fail("no flow")
      const name = "<img src=x onerror=alert(1)>"
      stand.status = { ...HEALTHY, flows: [{ ...busy, name, reason: name, state: "retrying" }] }
      yield* waited("the flow of that name", async () => await page.locator("h2").first().innerText() === name)
      assert.strictEqual(yield* promised(() => page.locator("img").count()), 0)
      assert.deepStrictEqual(complaints, [])
    })))
})
