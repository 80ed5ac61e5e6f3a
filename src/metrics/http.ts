/**
 * The HTTP surface: /health/live, /health/ready, /metrics, /status, /history and the page at "/".
 *
 * On node:http and not on Effect's server, which is unstable: six routes that read and never write need no more.
 *
 * Guarantees: only GET and HEAD are answered; the server is closed with its scope, open connections too; an address
 * that cannot be used is an HttpListenError in one sentence.
 */
import { Cause, Effect, Exit, Schema, type Scope } from "effect"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { HistoryDocument } from "./history.ts"
import { PAGE_FILES, PAGE_POLICY, type PageFile } from "./page.ts"
import { readiness, type StatusInput } from "./status.ts"
import { PROMETHEUS_CONTENT_TYPE, prometheusText } from "./text.ts"

export class HttpListenError extends Schema.TaggedError<HttpListenError>()("HttpListenError", {
  /** "host:port" */
  address: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return `cannot listen on ${this.address}: ${this.what}; set http.listen to another address, or to false`
  }
}

export interface HttpOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Asked for at each request; must not wait for anything. */
  readonly status: Effect.Effect<StatusInput>
  /** The last 15 minutes, for the page's plots. */
  readonly history: () => HistoryDocument
}

interface Answer {
  readonly code: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

const JSON_TYPE = "application/json; charset=utf-8"
const json = (code: number, value: unknown): Answer => ({ code, type: JSON_TYPE, body: `${JSON.stringify(value)}\n` })

const pageAnswer = (file: PageFile): Answer => ({
  code: 200,
  ...file,
  headers: { "content-security-policy": PAGE_POLICY, "referrer-policy": "no-referrer" }
})

const routes = ({ history, status }: HttpOptions): Readonly<Record<string, Effect.Effect<Answer>>> => ({
  // Answering at all is what "live" means.
  "/health/live": Effect.succeed(json(200, { live: true })),
  "/health/ready": Effect.map(status, (now) => {
    const state = readiness(now)
    return json(state.ready ? 200 : 503, state)
  }),
  "/metrics": Effect.map(prometheusText, (body) => ({ code: 200, type: PROMETHEUS_CONTENT_TYPE, body })),
  "/status": Effect.map(status, (now) => json(200, now)),
  "/history": Effect.sync(() => json(200, history())),
  ...Object.fromEntries(Object.entries(PAGE_FILES).map(([path, file]) => [path, Effect.succeed(pageAnswer(file))]))
})

const pathOf = (url: string | undefined): string => (url ?? "/").split("?")[0] ?? "/"

const respond = (response: ServerResponse, answer: Answer, head: boolean): void => {
  response.writeHead(answer.code, {
    "content-type": answer.type,
    "content-length": Buffer.byteLength(answer.body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...answer.headers
  })
  response.end(head ? undefined : answer.body)
}

const handle = (
  table: Readonly<Record<string, Effect.Effect<Answer>>>,
  request: IncomingMessage,
  response: ServerResponse
): Effect.Effect<void> =>
  Effect.gen(function*() {
    const path = pathOf(request.url)
    const route = Object.hasOwn(table, path) ? table[path] : undefined
    if (route === undefined) {
      return respond(
        response,
        json(404, {
          error: `no such path; there are ${
            Object.keys(table).filter((known) => !known.startsWith("/page/")).join(", ")
          }`
        }),
        request.method === "HEAD"
      )
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return respond(response, { ...json(405, { error: "only GET and HEAD" }), headers: { allow: "GET, HEAD" } }, false)
    }
    const exit = yield* Effect.exit(route)
    if (Exit.isFailure(exit)) yield* Effect.logError(`answering ${path} failed: ${Cause.pretty(exit.cause)}`)
    const answer = Exit.isSuccess(exit) ? exit.value : json(500, { error: "failed; the log says why" })
    respond(response, answer, request.method === "HEAD")
  })

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EACCES: "permission denied",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name cannot be resolved now"
}

const showAddress = (host: string, port: number): string => host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`

const listen = (server: Server, options: HttpOptions): Effect.Effect<AddressInfo, HttpListenError> =>
  Effect.callback<AddressInfo, HttpListenError>((resume) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const what = REASONS[error.code ?? ""] ?? error.message
      resume(Effect.fail(new HttpListenError({ address: showAddress(options.host, options.port), what })))
    }
    server.once("error", failed)
    server.listen({ host: options.host, port: options.port }, () => {
      server.removeListener("error", failed)
      resume(Effect.succeed(server.address() as AddressInfo))
    })
  })

const close = (server: Server): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  }).pipe(Effect.timeoutOrElse({ duration: "2 seconds", orElse: () => Effect.void }))

/** Serves until the scope closes. Returns the address, with the port that was taken. */
export const serveHttp = (
  options: HttpOptions
): Effect.Effect<
  { readonly host: string; readonly port: number; readonly url: string },
  HttpListenError,
  Scope.Scope
> =>
  Effect.gen(function*() {
    const table = routes(options)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => createServer((request, response) => void run(handle(table, request, response)))),
      (made) => made.listening ? close(made) : Effect.void
    )
    const address = yield* listen(server, options)
    // After listening: what happens to one connection is no reason to stop mirroring.
    server.on("error", () => {})
    server.on("clientError", (_, socket) => socket.destroy())
    return { host: options.host, port: address.port, url: `http://${showAddress(options.host, address.port)}` }
  })
