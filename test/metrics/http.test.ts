/** The HTTP surface on a real port. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Metric, Ref, Scope } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { makeFlowMetrics } from "../../src/metrics/flowMetrics.ts"
import { serveHttp } from "../../src/metrics/http.ts"
import type { StatusInput } from "../../src/metrics/status.ts"
import { flow as flowOf, NO_HISTORY, status, TROUBLED_HISTORY } from "../kit/statusDocuments.ts"

type Flow = StatusInput["flows"][number]

const flow = (name: string, state: Flow["state"], reason: string | null = null): Flow => flowOf(name, { state, reason })

const get = (url: string, init?: RequestInit) =>
  Effect.promise(async () => {
    const response = await fetch(url, init)
    return { code: response.status, headers: response.headers, text: await response.text() }
  })

const served = (document: StatusInput) =>
  serveHttp({ host: "127.0.0.1", port: 0, status: Effect.succeed(document), history: () => TROUBLED_HISTORY })

describe("the HTTP surface", () => {
  it.live("is ready when every flow runs, and says of each that does not why", () =>
    Effect.scoped(Effect.gen(function*() {
      const now = yield* Ref.make(status(flow("a", "starting"), flow("b", "running")))
      const { url } = yield* serveHttp({ host: "127.0.0.1", port: 0, status: Ref.get(now), history: () => NO_HISTORY })
      const ready = get(`${url}/health/ready`)
      const first = yield* ready
      assert.strictEqual(first.code, 503)
      assert.deepStrictEqual(JSON.parse(first.text), { ready: false, reasons: ["flow a is starting"] })
      yield* Ref.set(now, status(flow("a", "running"), flow("b", "retrying", "west: connection refused")))
      assert.deepStrictEqual(JSON.parse((yield* ready).text).reasons, ["flow b is retrying: west: connection refused"])
      yield* Ref.set(now, status(flow("a", "running"), flow("b", "running")))
      const last = yield* ready
      assert.strictEqual(last.code, 200)
      assert.deepStrictEqual(JSON.parse(last.text), { ready: true, reasons: [] })
    })))

  it.live("is live while it answers, whatever the flows do", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* served(status(flow("a", "failed", "x")))
      assert.strictEqual((yield* get(`${url}/health/live`)).code, 200)
    })))

  it.live("gives the status as it is, never cached", () =>
    Effect.scoped(Effect.gen(function*() {
      const document = status(flow("a", "running"))
      const { url } = yield* served(document)
      const answer = yield* get(`${url}/status?x=1`)
      assert.deepStrictEqual(JSON.parse(answer.text), document)
      assert.strictEqual(answer.headers.get("cache-control"), "no-store")
      assert.match(answer.headers.get("content-type") ?? "", /^application\/json/)
    })))

  it.live("gives the metrics of the registry of the service", () =>
    Effect.scoped(Effect.gen(function*() {
      const metrics = yield* makeFlowMetrics("f", "share")
      metrics.deadLetters(3)
      const { url } = yield* served(status())
      const answer = yield* get(`${url}/metrics`)
      assert.include(answer.text, "onceover_dead_letters_total{flow=\"f\"} 3\n")
      assert.strictEqual(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    })).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))

  it.live("gives the history as it is", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* served(status())
      assert.deepStrictEqual(JSON.parse((yield* get(`${url}/history`)).text), TROUBLED_HISTORY)
    })))

  it.live("has a page for people whose every file is served here, under a policy that runs nothing else", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* served(status())
      const page = yield* get(`${url}/`)
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/)
      const policy = page.headers.get("content-security-policy") ?? ""
      assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
      assert.notInclude(policy, "unsafe")
      assert.include(page.text, "<html lang=\"en\">")
      // What the policy would not run must not be there: inline script, inline style, handlers.
      assert.notMatch(page.text, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/)
      const seen = new Set<string>()
      const follow = (path: string): Effect.Effect<void> =>
        Effect.gen(function*() {
          if (seen.has(path)) return
          seen.add(path)
          const file = yield* get(`${url}/${path}`)
          assert.strictEqual(file.code, 200, path)
          assert.match(
            file.headers.get("content-type") ?? "",
            path.endsWith(".js") ? /^text\/javascript/ : /^text\/css/
          )
          assert.notMatch(file.text, /(?:url\(|import .*["'])(?:https?:)?\/\//, `${path} loads from elsewhere`)
          for (const [, name] of file.text.matchAll(/from "\.\/([a-z]+\.js)"/g)) yield* follow(`page/${name}`)
        })
      for (const [, path = ""] of page.text.matchAll(/(?:src|href)="(page\/[^"]+)"/g)) yield* follow(path)
      assert.isAbove(seen.size, 5)
    })))

  it.live("refuses other paths and other methods in words", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* served(status())
      const lost = yield* get(`${url}/nope`)
      assert.strictEqual(lost.code, 404)
      assert.include(lost.text, "/health/ready")
      const post = yield* get(`${url}/status`, { method: "POST", body: "x" })
      assert.strictEqual(post.code, 405)
      assert.strictEqual(post.headers.get("allow"), "GET, HEAD")
      const head = yield* get(`${url}/status`, { method: "HEAD" })
      assert.strictEqual(head.code, 200)
      assert.strictEqual(head.text, "")
    })))

  it.live("answers 500 when the status cannot be made, and goes on", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serveHttp({
        host: "127.0.0.1",
        port: 0,
        status: Effect.die(new Error("broken")),
        history: () => NO_HISTORY
      })
      assert.strictEqual((yield* get(`${url}/status`)).code, 500)
      assert.strictEqual((yield* get(`${url}/health/live`)).code, 200)
    })))

  it.live("on a busy port fails in one sentence", () =>
    Effect.scoped(Effect.gen(function*() {
      const blocker = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const server = createServer().listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      const { port } = blocker.address() as AddressInfo
      const error = yield* Effect.flip(
        serveHttp({ host: "127.0.0.1", port, status: Effect.succeed(status()), history: () => NO_HISTORY })
      )
      assert.strictEqual(
        error.message,
        `cannot listen on 127.0.0.1:${port}: the port is in use; set http.listen to another address, or to false`
      )
    })))

  it.live("is gone with its scope, kept connections too", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { url } = yield* Effect.provideService(served(status()), Scope.Scope, scope)
      assert.strictEqual((yield* get(`${url}/health/live`)).code, 200)
      yield* Scope.close(scope, Exit.void)
      const after = yield* Effect.exit(Effect.tryPromise(() => fetch(`${url}/health/live`)))
      assert.isTrue(Exit.isFailure(after))
    }))
})
