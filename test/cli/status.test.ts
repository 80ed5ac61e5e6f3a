/** `onceover status` against a server that is really there, and against none. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fetchStatus, renderStatus } from "../../src/cli/statusCommand.ts"
import { serveHttp } from "../../src/metrics/http.ts"
import type { StatusInput } from "../../src/metrics/status.ts"
import { runCli } from "../kit/cli.ts"
import { NO_HISTORY, NOTHING } from "../kit/statusDocuments.ts"

const totals = { ...NOTHING, recordsMirrored: 1_234_567, bytesMirrored: 89 }

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
          "1,234,567 records"
        ]
      ) {
        assert.include(text.out, part)
      }
      assert.match(text.out, /orders-0 +east\.orders +1,000 +5 +11 +running/)
      assert.match(text.out, /orders-1 +east\.orders +\? +\? +0 +blocked: offset 7:\?\[31m too large/)
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
