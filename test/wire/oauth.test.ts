import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { ConnectionError } from "../../src/wire/errors.ts"
import { keptToken, type Token, tokenEndpoint, tokenFile, unsecuredToken } from "../../src/wire/oauth.ts"

const endpoint = (answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<Server>((resolve) => {
          const server = createServer((request, response) => {
            let body = ""
            request.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")))
            request.on("end", () => answer(request, response, body))
          }).listen(0, "127.0.0.1", () => resolve(server))
        })
      ),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    (server) => ({
      url: new URL(`http://127.0.0.1:${(server.address() as { port: number }).port}/token`),
      clientId: "me",
      clientSecret: "hunter2",
      scope: "read write",
      ca: null,
      timeoutMs: 30_000
    })
  )

const failure = (source: () => Promise<unknown>) =>
  Effect.promise(() =>
    source().then(() => assert.fail("it succeeded"), (error: unknown) => {
      if (!(error instanceof ConnectionError)) throw error
      assert.notInclude(error.message, "hunter2")
      return error
    })
  )

const json = (response: ServerResponse, value: unknown) => response.writeHead(200).end(JSON.stringify(value))

describe("OAuth tokens", () => {
  it.live("are asked for as RFC 6749 says, with the client's id and secret and the scope", () =>
    Effect.scoped(Effect.gen(function*() {
      const seen: Array<string | undefined> = []
      const options = yield* endpoint((request, response, body) => {
        seen.push(request.method, request.headers.authorization, request.headers["content-type"], body)
        json(response, { access_token: "opaque", expires_in: 100 })
      })
      const token = yield* Effect.promise(tokenEndpoint(options))
      assert.deepStrictEqual(token, { text: "opaque", freshMs: 80_000 })
      assert.deepStrictEqual(seen, [
        "POST",
        `Basic ${Buffer.from("me:hunter2").toString("base64")}`,
        "application/x-www-form-urlencoded",
        "grant_type=client_credentials&scope=read+write"
      ])
    })))

  it.live("that are refused are an authentication failure; a server's own failure may pass", () =>
    Effect.scoped(Effect.gen(function*() {
      let status = 401
      const options = yield* endpoint((_, response) => response.writeHead(status).end("{}"))
      assert.strictEqual((yield* failure(tokenEndpoint(options))).kind, "authentication")
      status = 503
      const error = yield* failure(tokenEndpoint(options))
      assert.strictEqual(error.kind, "refused")
      assert.include(error.message, "503")
    })))

  it.live("are refused when the answer is no token: no JSON, no access_token, null, endless", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const body of ["<html>", "{}", "null", `{"access_token":7}`, "x".repeat(2_000_000)]) {
        const options = yield* endpoint((_, response) => response.writeHead(200).end(body))
        assert.include((yield* failure(tokenEndpoint(options))).message, "its answer")
      }
    })))

  it.live("do not wait for an endpoint that never answers, or is not there", () =>
    Effect.scoped(Effect.gen(function*() {
      const options = yield* endpoint(() => undefined)
      assert.strictEqual((yield* failure(tokenEndpoint({ ...options, timeoutMs: 50 }))).kind, "timeout")
      const gone = yield* Effect.scoped(endpoint(() => undefined))
      assert.strictEqual((yield* failure(tokenEndpoint(gone))).kind, "refused")
    })))

  it.live("are kept while fresh, asked once for all who wait, and asked again after a failure", () =>
    Effect.gen(function*() {
      let asked = 0
      const answers: ReadonlyArray<Token | Error> = [new Error("down"), { text: "a", freshMs: 1e9 }]
      const token = keptToken(() => {
        const answer = answers[asked++] as Token | Error
        return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
      })
      yield* Effect.promise(() => token().then(() => assert.fail("it succeeded"), () => undefined))
      assert.deepStrictEqual(yield* Effect.promise(() => Promise.all([token(), token(), token()])), ["a", "a", "a"])
      assert.strictEqual(asked, 2)
    }))

  it.live("are replaced when they are no longer fresh", () =>
    Effect.gen(function*() {
      let asked = 0
      const token = keptToken(async () => ({ text: String(++asked), freshMs: 0 }))
      assert.strictEqual(yield* Effect.promise(token), "1")
      assert.strictEqual(yield* Effect.promise(token), "2")
    }))

  it.live("live as long as they say themselves", () =>
    Effect.scoped(Effect.gen(function*() {
      const own = yield* Effect.promise(unsecuredToken({ sub: "a" }, 50))
      assert.strictEqual(own.freshMs, 40_000)
      const options = yield* endpoint((_, response) => json(response, { access_token: own.text, expires_in: 9_999 }))
      const token = yield* Effect.promise(tokenEndpoint(options))
      assert.isAtMost(token.freshMs, 40_000)
    })))

  it.live("may lie in a file that somebody else keeps fresh", () =>
    Effect.gen(function*() {
      const folder = mkdtempSync(join(tmpdir(), "onceover-token-"))
      const path = join(folder, "token")
      const read = tokenFile(pathToFileURL(path))
      assert.include((yield* failure(read)).message, "ENOENT")
      writeFileSync(path, "abc\n")
      assert.deepStrictEqual(yield* Effect.promise(read), { text: "abc", freshMs: 0 })
      rmSync(folder, { recursive: true })
    }))
})
