/**
 * A client's connections to the cluster in this process: what src/wire's client asks of a socket, on the engine.
 *
 * As with a real connection, a request that is not answered in time closes it, and with it everything else that is
 * under way there.
 */
import { Effect, Scope } from "effect"
import type { BrokerPool, LinkPort, Ready } from "../wire/brokerPool.ts"
import type { RawRequest } from "../wire/connection.ts"
import type { ProtocolError } from "../wire/bytes.ts"
import { guarded } from "../wire/connection.ts"
import { ConnectionError, type WireError } from "../wire/errors.ts"
import type { Offers } from "../wire/offers.ts"
import { receiveMemory } from "../wire/receiveMemory.ts"
import { type Api, type Decoded, type Encoded } from "../wire/schema.ts"
import { type ClientConfig, type HostPort, showHostPort } from "../wire/settings.ts"
import type { Engine, EngineConnection, Reply } from "./engine.ts"
import type { Handler } from "./handlers/handler.ts"

/** What a client's connections need of an engine; a simulation puts something in between. */
export type LinkEngine = Pick<Engine, "connect" | "send" | "close" | "handlers" | "state">

/** Engine and clock, and what has to be done after every call to the engine. */
export interface LinkDriver {
  readonly engine: LinkEngine
  readonly nowMs: () => number
  /** Something may be due earlier than before. */
  readonly schedule: () => void
  /** A request that cannot be written: a mistake of the sender's, which it may well get over without a word. */
  readonly onMistake?: (mistake: ProtocolError) => void
}
export interface Driver extends LinkDriver {
  readonly engine: Engine
}

/** As a connection has it: in memory that is taken back from those who look at it too late. */
const received = (body: ReadonlyArray<Buffer>): Buffer => {
  const room = receiveMemory.take(body.reduce((sum, { length }) => sum + length, 0), 0)
  let to = 0
  for (const piece of body) to += piece.copy(room, to)
  return room
}

class EmbeddedLink implements LinkPort {
  readonly address: string
  readonly isExpiring = false
  readonly idleMs = 0
  inflight = 0
  readonly #driver: LinkDriver
  readonly #connection: EngineConnection

  constructor(driver: LinkDriver, connection: EngineConnection, address: string) {
    this.#driver = driver
    this.#connection = connection
    this.address = address
  }

  get isOpen(): boolean {
    return this.#connection.open
  }

  fail(reason: WireError): void {
    this.#driver.engine.close(this.#connection, reason.message, this.#driver.nowMs())
    this.#driver.schedule()
  }

  send<Req, Res>(
    api: Api<Req, Res>,
    version: number,
    value: Encoded<Req>,
    timeoutMs: number
  ): Effect.Effect<Decoded<Res>, WireError> {
    return guarded(() => api.request.encode(version, value)).pipe(
      Effect.tapError((mistake) => Effect.sync(() => this.#driver.onMistake?.(mistake))),
      Effect.flatMap((body) =>
        this.sendRaw({ key: api.key, name: api.name, version, flexible: version >= api.flexibleFrom, body, timeoutMs })
      ),
      Effect.flatMap((bytes) => guarded(() => api.response.decode(version, bytes)))
    )
  }

  /** Gives the answer's body: there are no headers here. */
  sendRaw(request: RawRequest): Effect.Effect<Buffer, WireError> {
    return Effect.callback<Buffer, WireError>((resume) => {
      this.inflight++
      let settled = false
      const reply = (answer: Reply) => {
        if (settled) return
        settled = true
        this.inflight--
        resume(this.#result(request, answer))
      }
      const sent = { apiKey: request.key, version: request.version, body: Buffer.concat(request.body), reply }
      this.#driver.engine.send(this.#connection, sent, this.#driver.nowMs())
      this.#driver.schedule()
    }).pipe(Effect.timeoutOrElse({
      duration: Math.max(1, request.timeoutMs),
      orElse: () => {
        const error = this.#error("timeout", "unknown", `no answer to ${request.name} within ${request.timeoutMs} ms`)
        this.fail(error)
        return Effect.fail(error)
      }
    }))
  }

  #error(kind: "closed" | "timeout" | "refused", outcome: "unsent" | "unknown", what: string): ConnectionError {
    return new ConnectionError({ address: this.address, kind, outcome, what })
  }

  #result(request: RawRequest, reply: Reply): Effect.Effect<Buffer, WireError> {
    switch (reply.kind) {
      case "answer":
        return Effect.succeed(received(reply.body))
      case "closed":
        return Effect.fail(
          this.#error(reply.sent ? "closed" : "refused", reply.sent ? "unknown" : "unsent", reply.what)
        )
      case "unsupported":
        return Effect.fail(
          this.#error("closed", "unknown", `${request.name} version ${request.version} is not offered`)
        )
    }
  }
}

const offersOf = (engine: LinkEngine, handlers: Iterable<Handler>): Offers => ({
  apis: new Map([...handlers].map(({ api }) => [api.key, { min: api.versions.min, max: api.versions.max }])),
  features: {
    epoch: 1,
    levels: new Map([...engine.state.features].filter(([, f]) => f.level > 0).map(([name, f]) => [name, f.level]))
  }
})

/** The pool of one client. Its connections close with the scope. */
export const makeEmbeddedPool = (
  driver: LinkDriver,
  client: string,
  config: ClientConfig
): Effect.Effect<BrokerPool, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { engine } = driver
    const scope = yield* Scope.fork(yield* Effect.scope)
    const open = new Map<string, Ready>()
    const failing = new Set<string>()
    const closeLink = (ready: Ready, why: string) =>
      ready.link.fail(
        new ConnectionError({ address: ready.link.address, kind: "closed", outcome: "unknown", what: why })
      )
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const ready of open.values()) closeLink(ready, "closed by the client")
        open.clear()
      })
    )
    const keyOf = (address: HostPort, purpose: string) => `${purpose}\n${showHostPort(address)}`
    const opened = (address: HostPort, purpose: string): Ready | null => {
      const ready = open.get(keyOf(address, purpose))
      return ready?.link.isOpen === true ? ready : null
    }
    const connect = (address: HostPort, purpose: string): Ready | null => {
      const broker = [...engine.state.brokers.values()].find((b) => b.host === address.host && b.port === address.port)
      const connection = broker === undefined
        ? null
        : engine.connect(broker.id, client, purpose, config.clientId, "/127.0.0.1")
      if (connection === null) return null
      const link = new EmbeddedLink(driver, connection, showHostPort(address))
      const ready: Ready = { link, offers: offersOf(engine, engine.handlers), scope, throttledUntilMs: 0 }
      open.set(keyOf(address, purpose), ready)
      return ready
    }
    const refused = (shown: string) =>
      new ConnectionError({ address: shown, kind: "refused", outcome: "unsent", what: "connection refused" })
    return {
      open: opened,
      isFailing: (address) => failing.has(showHostPort(address)),
      acquire: (address, purpose) =>
        Effect.suspend(() => {
          const shown = showHostPort(address)
          const ready = opened(address, purpose) ?? connect(address, purpose)
          if (ready !== null) {
            failing.delete(shown)
            return Effect.succeed(ready)
          }
          failing.add(shown)
          return Effect.delay(Effect.fail(refused(shown)), config.reconnectBackoffMs)
        }),
      release: (purpose) =>
        Effect.sync(() => {
          for (const [key, ready] of [...open]) {
            if (!key.startsWith(`${purpose}\n`)) continue
            open.delete(key)
            closeLink(ready, "released")
          }
        })
    }
  })
