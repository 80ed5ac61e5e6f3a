/** `onceover status` against a server that is really there, and against none. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fetchStatus, renderStatus, StatusError } from "../../src/cli/statusCommand.ts"
import { frame, watchStatus } from "../../src/cli/watchCommand.ts"
import { serveHttp } from "../../src/metrics/http.ts"
import type { StatusInput } from "../../src/metrics/status.ts"
import { runCli, startCli } from "../kit/cli.ts"
import { NO_HISTORY, NOTHING } from "../kit/statusDocuments.ts"

const totals = {
  ...NOTHING,
  recordsMirrored: 1_234_567,
  bytesMirrored: 89,
  duplicatesPrevented: 3,
  transactionsCommitted: 7,
  deadLetters: 2
}

const document: StatusInput = {
  service: { name: "onceover", version: "9.9.9" },
  startedAt: "2026-01-01T00:00:00.000Z",
  uptimeSeconds: 61.4,
  flows: [{
    name: "east->west",
    source: "east",
    target: "west",
    mode: "share",
    guarantee: {
      wanted: "exactly-once",
      effective: "at-least-once",
      binding: "none",
      reasons: ["ledger: the target has no transactions"]
    },
    state: "running",
    reason: null,
    since: "2026-01-01T00:00:00.000Z",
    lanes: 2,
    totals,
    partitions: [
      {
        topic: "orders",
        partition: 0,
        targetTopic: "east.orders",
        position: 1_000,
        lag: 5,
        rate: 10.6,
        latencySeconds: 0.25,
        state: "running",
        reason: null
      },
      {
        topic: "orders",
        partition: 1,
        targetTopic: "east.orders",
        position: null,
        lag: null,
        rate: 0,
        latencySeconds: null,
        state: "blocked",
        reason: "offset 7:\u001b[31m too large"
      }
    ]
  }]
}

const web = (answer: string, code = 200) =>
  Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      const server = createServer((_, response) => response.writeHead(code).end(answer))
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)))
      server.unref()
    }),
    () =>
      Effect.void
  )

describe("onceover status", () => {
  it.live("shows flows, what holds and why, and each partition; as JSON it is what the service said", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serveHttp({
        host: "127.0.0.1",
        port: 0,
        status: Effect.succeed(document),
        history: () => NO_HISTORY
      })
      const [text, json] = yield* Effect.promise(() =>
        Promise.all([runCli(["status", "--url", url]), runCli(["status", "--url", url, "--json"])])
      )
      assert.deepStrictEqual([text.code, text.err], [0, ""])
      for (
        const part of [
          "onceover 9.9.9, up for 61 s",
          "east->west  east -> west",
          "at-least-once (wanted: exactly-once), binding none",
          "ledger: the target has no transactions",
          "1,234,567 records",
          "moving     11 records/s, lag 5, latency 250 ms",
          "prevented  3 duplicates; transactions: 7 committed, 0 aborted, 0 fenced",
          "records    2 to the dead-letter topic"
        ]
      ) {
        assert.include(text.out, part)
      }
      assert.match(text.out, /orders-0 +east\.orders +1,000 +5 +11 +250 ms +running/)
      assert.match(text.out, /orders-1 +east\.orders +\? +\? +0 +\? +blocked: offset 7:\?\[31m too large/)
      assert.deepStrictEqual(JSON.parse(json.out), document)
    })))

  it.live("where nothing listens ends with 1 and one line that says how to name the address", () =>
    Effect.gen(function*() {
      const free = yield* Effect.scoped(
        Effect.map(
          serveHttp({ host: "127.0.0.1", port: 0, status: Effect.succeed(document), history: () => NO_HISTORY }),
          ({ url }) => url
        )
      )
      const end = yield* Effect.promise(() => runCli(["status", "--url", free]))
      assert.deepStrictEqual([end.code, end.out], [1, ""])
      assert.deepStrictEqual(end.errLines, [
        `onceover: cannot read ${free}/status: nothing listens there; --url says where the service listens`
      ])
    }))

  it.live("of something else than onceover is told so", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const answer of ["<html>", "{}", "{\"service\":{}}"]) {
        const url = yield* web(answer)
        const error = yield* Effect.flip(fetchStatus(new URL(url)))
        assert.strictEqual(error.message, `${url}/status is not the status of an onceover service`)
      }
      const url = yield* web("no", 404)
      assert.include((yield* Effect.flip(fetchStatus(new URL(url)))).message, "it answers 404")
    })))

  it.live("keeps a path in the address, as a proxy in front gives one", () =>
    Effect.scoped(Effect.gen(function*() {
      const error = yield* Effect.flip(fetchStatus(new URL(`${yield* web("x")}/mirror?a=1`)))
      assert.match(error.message, /\/mirror\/status is not/)
    })))

  it("says when no partition is known", () => {
    const [flow] = document.flows
    if (flow === undefined) return assert.fail("no flow")
    assert.include(renderStatus({ ...document, flows: [{ ...flow, partitions: [] }] }), "no partitions")
  })
})

describe("onceover status --watch", () => {
  const screen = { rows: () => 40, columns: () => 100, colours: false }

  /** What was written after each of `answers` was given, on virtual time. */
  const watched = (answers: ReadonlyArray<StatusInput | null>, json: boolean, on: typeof screen | null) =>
    Effect.gen(function*() {
      const written: Array<string> = []
      let n = 0
      const fetch = Effect.suspend(() => {
        const answer = answers[Math.min(n++, answers.length - 1)] ?? null
        return answer === null
          ? Effect.fail(new StatusError({ what: "cannot read it: nothing listens there" }))
          : Effect.succeed({ text: JSON.stringify(answer, null, 2), status: answer })
      })
      const out = (text: string) => void written.push(text)
      const fiber = yield* Effect.forkChild(watchStatus(fetch, json, { out, err: out, screen: on }))
      yield* TestClock.adjust(`${answers.length * 2 - 1} seconds`)
      yield* Fiber.interrupt(fiber)
      return written
    })

  it.effect("draws in place, says when nobody answers and goes on, and gives the terminal back as it was", () =>
    Effect.gen(function*() {
      const written = yield* watched([document, null, document], false, screen)
      assert.lengthOf(written, 5)
      assert.deepStrictEqual([written[0], written[4]], ["\u001b[?1049h\u001b[?25l", "\u001b[?25h\u001b[?1049l"])
      assert.include(written[1], "orders-0")
      assert.include(written[2], "nothing listens there")
      assert.strictEqual(written[3], written[1])
      for (const text of written.slice(1, 4)) assert.isTrue(text.startsWith("\u001b[H") && text.endsWith("\u001b[J"))
    }))

  it.effect("without a terminal writes one state after the other, with --json one a line, and no control character", () =>
    Effect.gen(function*() {
      const lines = yield* watched([document, document], true, screen)
      assert.deepStrictEqual(lines.map((line) => JSON.parse(line)), [document, document])
      for (const line of lines) assert.strictEqual(line.indexOf("\n"), line.length - 1)
      const text = (yield* watched([document, null], false, null)).join("")
      assert.notInclude(text, "\u001b")
      assert.include(text, "onceover: cannot read it: nothing listens there\n")
    }))

  it("never draws more than the screen holds, and says what it left out", () => {
    const text = renderStatus({ ...document, flows: [...document.flows, ...document.flows] })
    const drawn = frame(text, { rows: () => 10, columns: () => 30, colours: false })
    const lines = drawn.replaceAll(/\u001b\[[HKJ]/g, "").split("\r\n")
    assert.lengthOf(lines, 10)
    assert.isAtMost(Math.max(...lines.map((line) => line.length)), 30)
    assert.strictEqual(lines[8], "... 21 more lines; onceover st")
    assert.strictEqual(lines[9], "")
  })

  it("says in colour how a flow and a partition stand, where colours are wanted", () => {
    const drawn = frame(renderStatus(document), { ...screen, colours: true })
    assert.include(drawn, "state      \u001b[32mrunning\u001b[0m")
    assert.match(drawn, /orders-1.*\u001b\[31mblocked\u001b\[0m: offset 7/)
  })

  it.live("as a process watches until it is interrupted, and ends with 0", () =>
    Effect.scoped(Effect.gen(function*() {
      const { url } = yield* serveHttp({
        host: "127.0.0.1",
        port: 0,
        status: Effect.succeed(document),
        history: () => NO_HISTORY
      })
      const cli = startCli(["status", "--url", url, "--watch"])
      yield* Effect.promise(() => cli.saw("orders-1"))
      cli.signal("SIGINT")
      assert.strictEqual((yield* Effect.promise(() => cli.end)).code, 0)
    })))
})
