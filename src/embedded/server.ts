/**
 * Lets real clients in: a TCP server for each broker of an embedded cluster. Plain connections only.
 *
 * Guarantees: answers come in the order of the requests of their connection; a request larger than
 * `maxRequestBytes`, or one that is not what the protocol says, closes its connection and nothing else; everything
 * closes with the scope.
 */
import { Effect, Schema, type Scope } from "effect"
import { createServer, type Server, type Socket } from "node:net"
import { ByteReader, ByteWriter, ProtocolError } from "../wire/bytes.ts"
import { apiVersions } from "../wire/messages/apiVersions.ts"
import { requestHeaderVersion, responseHeaderVersion } from "../wire/schema.ts"
import type { Embedded } from "./embedded.ts"
import type { EngineConnection, Reply } from "./engine.ts"
import type { Handler } from "./handlers/handler.ts"
import { code } from "./model/codes.ts"

export class ServeError extends Schema.TaggedError<ServeError>()("ServeError", { what: Schema.String }) {
  override get message(): string {
    return this.what
  }
}

export interface ServeOptions {
  /** Default 127.0.0.1. */
  readonly host?: string
  /** One a broker; 0 takes a free one. Default: free ones. */
  readonly ports?: ReadonlyArray<number>
  /** socket.request.max.bytes; default 100 MiB. */
  readonly maxRequestBytes?: number
}

export interface Serving {
  /** For clients: "127.0.0.1:9092,127.0.0.1:9093" */
  readonly bootstrap: string
}

/** Cuts a stream of bytes into frames. */
class Frames {
  #held: Array<Buffer> = []
  #length = 0
  readonly #maxBytes: number

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Throws ProtocolError for a length that cannot be. */
  take(chunk: Buffer): ReadonlyArray<Buffer> {
    this.#held.push(chunk)
    this.#length += chunk.length
    const out: Array<Buffer> = []
    while (this.#length >= 4) {
      const size = this.#joined(4).readInt32BE(0)
      if (size < 8 || size > this.#maxBytes) throw new ProtocolError({ what: `a request announces ${size} bytes` })
      if (this.#length < size + 4) break
      const all = this.#joined(size + 4)
      out.push(all.subarray(4, size + 4))
      const rest = all.subarray(size + 4)
      this.#held[0] = rest
      this.#length -= size + 4
    }
    return out
  }

  /** Makes the first piece hold at least this much. */
  #joined(length: number): Buffer {
    const [first] = this.#held
    if (first !== undefined && first.length >= length) return first
    const all = Buffer.concat(this.#held)
    this.#held = [all]
    return all
  }
}

interface Head {
  readonly apiKey: number
  readonly version: number
  readonly correlationId: number
}

const readHead = (reader: ByteReader): Head => ({
  apiKey: reader.int16(),
  version: reader.int16(),
  correlationId: reader.int32()
})

const skipClientId = (reader: ByteReader): string => {
  const length = reader.int16()
  return length < 0 ? "" : reader.text(length)
}

/** One client's connection. */
class Peer {
  readonly #embedded: Embedded
  readonly #brokerId: number
  readonly #socket: Socket
  readonly #frames: Frames
  #connection: EngineConnection | null = null
  #answers: Array<Buffer> = []

  constructor(embedded: Embedded, brokerId: number, socket: Socket, maxBytes: number) {
    this.#embedded = embedded
    this.#brokerId = brokerId
    this.#socket = socket
    this.#frames = new Frames(maxBytes)
    socket.setNoDelay(true)
    socket.on("data", (chunk: Buffer) => this.#take(chunk))
    socket.on("error", () => socket.destroy())
    socket.on("close", () => this.#gone())
  }

  #gone(): void {
    const { engine, nowMs, schedule } = this.#embedded.driver
    if (this.#connection !== null) engine.close(this.#connection, "closed by the client", nowMs())
    schedule()
  }

  #take(chunk: Buffer): void {
    try {
      for (const frame of this.#frames.take(chunk)) this.#request(frame)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#socket.destroy()
    }
  }

  /** The broker may have stopped: then there is no connection to be had. */
  #connected(clientId: string): EngineConnection | null {
    if (this.#connection !== null) return this.#connection
    const host = `/${this.#socket.remoteAddress ?? ""}`
    this.#connection = this.#embedded.driver.engine.connect(this.#brokerId, clientId, "tcp", clientId, host)
    if (this.#connection !== null) this.#connection.onClose = () => this.#socket.destroy()
    return this.#connection
  }

  #request(frame: Buffer): void {
    const { engine, nowMs, schedule } = this.#embedded.driver
    const reader = new ByteReader(frame)
    const head = readHead(reader)
    const handler = engine.handlerOf(head.apiKey)
    const connection = this.#connected(skipClientId(reader))
    if (connection === null || handler === undefined) return void this.#socket.destroy()
    if (head.apiKey === apiVersions.key && head.version > handler.api.versions.max) {
      return this.#refuseVersion(head, handler)
    }
    if (requestHeaderVersion(handler.api, head.version) === 2) reader.skipTaggedFields()
    const body = frame.subarray(reader.position)
    const reply = (answer: Reply) => this.#reply(head, handler, answer)
    engine.send(connection, { apiKey: head.apiKey, version: head.version, body, reply }, nowMs())
    schedule()
  }

  /** KIP-511: an answer in the form of version 0 that says which version would do. */
  #refuseVersion(head: Head, handler: Handler): void {
    const { max: maxVersion, min: minVersion } = handler.api.versions
    const answer = {
      errorCode: code.UNSUPPORTED_VERSION,
      apiKeys: [{ apiKey: apiVersions.key, minVersion, maxVersion }]
    }
    this.#write(head.correlationId, false, apiVersions.response.encode(0, answer))
  }

  #reply(head: Head, handler: Handler, answer: Reply): void {
    if (answer.kind !== "answer") return void this.#socket.destroy()
    this.#write(head.correlationId, responseHeaderVersion(handler.api, head.version) === 1, answer.body)
  }

  #write(correlationId: number, taggedHeader: boolean, body: ReadonlyArray<Buffer>): void {
    if (this.#socket.destroyed) return
    const header = new ByteWriter()
    header.int32(4 + (taggedHeader ? 1 : 0) + body.reduce((sum, piece) => sum + piece.length, 0))
    header.int32(correlationId)
    if (taggedHeader) header.uvarint(0)
    if (this.#answers.length === 0) setImmediate(() => this.#flush())
    this.#answers.push(...header.chunks(), ...body)
  }

  /** Answers to requests that came together go out together. */
  #flush(): void {
    const answers = this.#answers
    this.#answers = []
    if (this.#socket.destroyed) return
    this.#socket.cork()
    for (const piece of answers) this.#socket.write(piece)
    this.#socket.uncork()
  }
}

const listen = (server: Server, host: string, port: number): Effect.Effect<number, ServeError> =>
  Effect.callback((resume) => {
    server.once(
      "error",
      (error) => resume(Effect.fail(new ServeError({ what: `cannot listen on ${host}:${port}: ${error.message}` })))
    )
    server.listen(port, host, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port))
    })
  })

const serveBroker = (embedded: Embedded, brokerId: number, host: string, port: number, maxBytes: number) =>
  Effect.gen(function*() {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
      return new Peer(embedded, brokerId, socket, maxBytes)
    })
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        server.close()
        for (const socket of sockets) socket.destroy()
      })
    )
    return yield* listen(server, host, port)
  })

/** Serves every broker of the cluster until the scope closes. */
export const serve = (
  embedded: Embedded,
  options: ServeOptions = {}
): Effect.Effect<Serving, ServeError, Scope.Scope> =>
  Effect.gen(function*() {
    const host = options.host ?? "127.0.0.1"
    const addresses: Array<string> = []
    let index = 0
    for (const broker of embedded.state.brokers.values()) {
      const port = yield* serveBroker(
        embedded,
        broker.id,
        host,
        options.ports?.[index++] ?? 0,
        options.maxRequestBytes ?? 104_857_600
      )
      broker.host = host
      broker.port = port
      addresses.push(`${host}:${port}`)
    }
    return { bootstrap: addresses.join(",") }
  })
