/**
 * One connection to one broker: @platformatic/kafka's Connection opens it (TCP, TLS, SASL); from then on the socket
 * is ours, as bytes are to be copied once at most (frames.ts). Several requests may be under way; the broker answers
 * them in order.
 *
 * Guarantees: every request ends with an answer or a typed failure by its deadline, whatever the other side does
 * (never answers, closes mid-way, answers garbage); an answer's announced size is checked before anything waits
 * for it; nothing here throws or emits into the void.
 *
 * Gotchas:
 * - A request that passes its deadline closes the connection, and everything under way on it fails with it: its
 *   answer could come later and nobody would know what it belongs to (Kafka's Java client does the same).
 * - Interrupting a `send` does not take the request back: it stays under way and the broker carries it out.
 * - Timers here are real (setTimeout): a socket lives in real time.
 * - The library is kept from re-authenticating in place (KIP-368), since it does not hold back other requests
 *   meanwhile, which brokers punish by closing. Such a connection `expires` and is replaced by its pool.
 */
import { Connection } from "@platformatic/kafka"
import { Effect, type Scope } from "effect"
import { isIP, type Socket } from "node:net"
import { ByteReader, ProtocolError } from "./bytes.ts"
import { type Circumstances, closedConnection, describeFailure, type Phase, wantsTls } from "./connectionErrors.ts"
import { ConnectionError, type WireError } from "./errors.ts"
import { FrameGuard } from "./frameGuard.ts"
import { FrameReader, FrameWriter } from "./frames.ts"
import { saslOptions } from "./sasl.ts"
import type { Api, Decoded, Encoded } from "./schema.ts"
import type { Security } from "./security.ts"
import { type HostPort, showHostPort } from "./settings.ts"

const NEVER_MS = 2_147_483_647
const API_VERSIONS = 18

export interface LinkOptions extends HostPort {
  readonly clientId: string
  readonly connectTimeoutMs: number
  readonly maxAnswerBytes: number
  readonly security: Security
  /** A request was not answered in time: the broker may be frozen, though its system still takes connections. */
  readonly onTimeout?: () => void
}

/** A request as bytes. */
export interface RawRequest {
  readonly key: number
  readonly name: string
  readonly version: number
  readonly flexible: boolean
  readonly body: ReadonlyArray<Buffer>
  readonly timeoutMs: number
}

interface Pending {
  readonly settle: (result: Effect.Effect<Buffer, WireError>) => void
  readonly timer: NodeJS.Timeout
  readonly correlationId: number
  readonly key: number
}

/** See the head of the file. Made by `openLink`. */
export class Link {
  readonly address: string
  readonly #connection: Connection
  readonly #options: LinkOptions
  /** In the order in which they were sent, which is that of their answers. */
  readonly #pending = new Set<Pending>()
  #writer: FrameWriter | null = null
  #nextCorrelationId = 0
  #phase: Phase = "connecting"
  #failure: WireError | null = null
  /** When the SASL session should not be used any more; `performance.now` time. */
  #expiresAt = Infinity
  #lastUsedMs = performance.now()

  constructor(options: LinkOptions) {
    this.address = showHostPort(options)
    this.#options = options
    const { security } = options
    this.#connection = new Connection(options.clientId, {
      connectTimeout: NEVER_MS,
      requestTimeout: NEVER_MS,
      ...(security.tls === null
        ? {}
        : { tls: security.tls, ...(isIP(options.host) === 0 ? { tlsServerName: true } : {}) }),
      ...(security.sasl === null ? {} : {
        sasl: saslOptions(security.sasl, (lifetimeMs) => {
          this.#expiresAt = performance.now() + lifetimeMs * 0.85
        })
      })
    })
    this.#connection.on("error", (error) => this.#failWith(error))
    this.#connection.on("close", () => this.fail(closedConnection(this.#at())))
  }

  #at(): Circumstances {
    const { protocol, sasl } = this.#options.security
    return { address: this.address, protocol, mechanism: sasl === null ? "" : sasl.mechanism, phase: this.#phase }
  }

  get isOpen(): boolean {
    return this.#failure === null
  }
  /** Requests under way. */
  get inflight(): number {
    return this.#pending.size
  }
  /** Milliseconds since the last answer. */
  get idleMs(): number {
    return performance.now() - this.#lastUsedMs
  }
  /** The broker will soon want a new authentication: open another one. */
  get isExpiring(): boolean {
    return performance.now() > this.#expiresAt
  }

  #failWith(error: unknown): void {
    this.fail(describeFailure(this.#at(), error))
  }

  /** Ends the connection and everything under way on it. The first reason stands. */
  fail(reason: WireError): void {
    if (this.#failure !== null) return
    this.#failure = reason
    const socket = this.#connection.socket as Socket | undefined
    socket?.on("error", () => {})
    socket?.destroy()
    // The library's own wait for the connection ends (and its timer with it) only by an event.
    if (this.#phase === "connecting") this.#connection.emit("close")
    for (const pending of this.#pending) this.#settle(pending, Effect.fail(reason))
  }

  #settle(pending: Pending, result: Effect.Effect<Buffer, WireError>): void {
    if (!this.#pending.delete(pending)) return
    clearTimeout(pending.timer)
    this.#lastUsedMs = performance.now()
    pending.settle(result)
  }

  #connectTimedOut(): void {
    const what = `not connected within ${this.#options.connectTimeoutMs} ms (socket.connection.setup.timeout.ms)`
    this.fail(new ConnectionError({ address: this.address, kind: "timeout", outcome: "unsent", what }))
  }

  /** TCP, TLS and SASL. Interrupting it closes the connection. */
  readonly connect: Effect.Effect<void, WireError> = Effect.callback<void, WireError>((resume) => {
    const timer = setTimeout(() => this.#connectTimedOut(), this.#options.connectTimeoutMs)
    const done = (error: unknown) => {
      clearTimeout(timer)
      if (error) this.#failWith(error)
      else if (this.#failure === null) this.#takeOver()
      resume(this.#failure === null ? Effect.void : Effect.fail(this.#failure))
    }
    try {
      this.#connection.connect(this.#options.host, this.#options.port, done)
      this.#watchSocket()
    } catch (error) {
      done(error)
    }
    return Effect.sync(() => this.fail(closedConnection(this.#at())))
  })

  /** Puts the size check in front of the library's reader, which waits for whatever size is announced. */
  #watchSocket(): void {
    const socket = this.#connection.socket
    socket.setKeepAlive(true, 60_000)
    socket.once(this.#options.security.tls === null ? "connect" : "secureConnect", () => {
      const inner = socket.listeners("data") as unknown as ReadonlyArray<(chunk: Buffer) => void>
      socket.removeAllListeners("data")
      const guard = new FrameGuard(this.address, this.#options.maxAnswerBytes)
      this.#onData((chunk) => {
        const wrong = guard.check(chunk)
        if (wrong === null) { for (const listener of inner) listener.call(socket, chunk) }
        return wrong
      })
    })
  }

  /** The library has opened it: what comes and goes from here on is read and written here. */
  #takeOver(): void {
    const { clientId, maxAnswerBytes } = this.#options
    const { socket } = this.#connection
    socket.removeAllListeners("data")
    this.#phase = "greeting"
    this.#writer = new FrameWriter(socket, clientId)
    const reader = new FrameReader(this.address, maxAnswerBytes, (frame) => this.#answered(frame))
    this.#onData((chunk) => reader.push(chunk))
  }

  /** What comes, for the one who reads it now; what it throws on bytes that are no Kafka ends the connection. */
  #onData(read: (chunk: Buffer) => ProtocolError | "tls" | null): void {
    this.#connection.socket.on("data", (chunk: Buffer) => {
      if (this.#failure !== null) return
      try {
        const wrong = read(chunk)
        if (wrong !== null) this.fail(wrong === "tls" ? wantsTls(this.#at()) : wrong)
      } catch (error) {
        this.fail(
          new ProtocolError({
            what: `${this.address} sent what is not Kafka's protocol: ${String((error as Error).message)}`
          })
        )
      }
    })
  }

  #answered(frame: Buffer): void {
    if (this.#failure !== null) return
    const correlationId = frame.readInt32BE(0)
    const [pending] = this.#pending
    if (pending?.correlationId !== correlationId) {
      const asked = pending === undefined ? "nothing was asked" : `the next answer is that to ${pending.correlationId}`
      throw new ProtocolError({ what: `an answer with correlation id ${correlationId}, where ${asked}` })
    }
    if (pending.key !== API_VERSIONS) this.#phase = "serving"
    this.#settle(pending, Effect.succeed(frame.subarray(4)))
  }

  #timeOut(request: RawRequest, pending: Pending): void {
    this.#options.onTimeout?.()
    const what = `no answer to ${request.name} within ${request.timeoutMs} ms`
    this.#settle(
      pending,
      Effect.fail(new ConnectionError({ address: this.address, kind: "timeout", outcome: "unknown", what }))
    )
    this.fail(
      new ConnectionError({
        address: this.address,
        kind: "closed",
        outcome: "unknown",
        what: `closed because there was ${what}`
      })
    )
  }

  /** Sends bytes, gives the bytes of the answer after its header's correlation id. */
  sendRaw(request: RawRequest): Effect.Effect<Buffer, WireError> {
    return Effect.callback<Buffer, WireError>((resume) => {
      if (this.#failure !== null) {
        const why = this.#failure instanceof ConnectionError ? this.#failure.what : this.#failure.message
        resume(
          Effect.fail(
            new ConnectionError({
              address: this.address,
              kind: "closed",
              outcome: "unsent",
              what: `the connection is closed (${why})`
            })
          )
        )
        return
      }
      const pending: Pending = {
        settle: resume,
        timer: setTimeout(() => this.#timeOut(request, pending), Math.min(request.timeoutMs, NEVER_MS)),
        correlationId: this.#nextCorrelationId,
        key: request.key
      }
      this.#nextCorrelationId = (this.#nextCorrelationId + 1) % NEVER_MS
      this.#pending.add(pending)
      this.#writer?.write(request, pending.correlationId)
    })
  }

  /** Sends one request in this version and decodes its answer. `timeoutMs` counts from now. */
  send<Req, Res>(
    api: Api<Req, Res>,
    version: number,
    value: Encoded<Req>,
    timeoutMs: number
  ): Effect.Effect<Decoded<Res>, WireError> {
    return Effect.suspend(() => {
      const flexible = version >= api.flexibleFrom
      return guarded(() => api.request.encode(version, value)).pipe(
        Effect.flatMap((body) => this.sendRaw({ key: api.key, name: api.name, version, flexible, body, timeoutMs })),
        Effect.flatMap((bytes) =>
          guarded(() => {
            const reader = new ByteReader(bytes)
            if (flexible && api.key !== API_VERSIONS) reader.skipTaggedFields()
            return api.response.decode(version, bytes.subarray(reader.position))
          }).pipe(Effect.tapError((error) => Effect.sync(() => this.fail(error))))
        )
      )
    })
  }
}

/** The codec throws ProtocolError; anything else is a bug of ours. */
export const guarded = <A>(run: () => A): Effect.Effect<A, ProtocolError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(run())
    } catch (error) {
      return error instanceof ProtocolError ? Effect.fail(error) : Effect.die(error)
    }
  })

/** Opens a connection (TCP, TLS, SASL) that is closed with the scope. Bounded by `connectTimeoutMs`. */
export const openLink = (options: LinkOptions): Effect.Effect<Link, WireError, Scope.Scope> =>
  Effect.gen(function*() {
    const link = yield* Effect.acquireRelease(
      Effect.sync(() => new Link(options)),
      (link) =>
        Effect.sync(() =>
          link.fail(
            new ConnectionError({ address: link.address, kind: "closed", outcome: "unknown", what: "closed by us" })
          )
        )
    )
    yield* link.connect
    return link
  })
