/**
 * A TCP server that speaks Kafka's framing with our own codec and does with each request what a test says: answer,
 * answer wrongly, stay silent, hang up. Requests are answered in order, as a broker does.
 */
import { Effect, type Scope } from "effect"
import { createServer, type Server, type Socket } from "node:net"
import { ByteReader } from "../../../src/wire/bytes.ts"
import { apiVersions } from "../../../src/wire/messages/apiVersions.ts"
import type { Api, Decoded, Encoded } from "../../../src/wire/schema.ts"

export interface FakeRequest {
  readonly key: number
  readonly version: number
  readonly correlationId: number
  readonly clientId: string
  /** After the header. */
  readonly body: Buffer
  readonly socket: Socket
  /** Connections are counted from 1. */
  readonly connection: number
}

/** What the server does with a request; undefined: it stays silent. */
export type Handler = (request: FakeRequest) => Buffer | undefined | void

export interface FakeBroker {
  readonly port: number
  readonly address: string
  readonly requests: ReadonlyArray<FakeRequest>
  /** Connections made so far, and those open now. */
  readonly connections: () => number
  readonly openConnections: () => number
  /** Drops every connection. */
  readonly hangUp: () => void
  /** Stops listening and drops every connection. */
  readonly stop: Effect.Effect<void>
}

/** The frame of an answer: size, correlation id, and an empty tag section where the header is flexible. */
export const frame = (request: FakeRequest, body: ReadonlyArray<Buffer>, flexibleHeader: boolean): Buffer => {
  const payload = Buffer.concat(flexibleHeader ? [Buffer.from([0]), ...body] : body)
  const head = Buffer.alloc(8)
  head.writeInt32BE(payload.length + 4, 0)
  head.writeInt32BE(request.correlationId, 4)
  return Buffer.concat([head, payload])
}

/** The answer of an API, encoded in the version of the request. */
export const answer = <Req, Res>(request: FakeRequest, api: Api<Req, Res>, value: Encoded<Res>): Buffer =>
  frame(
    request,
    api.response.encode(request.version, value),
    request.version >= api.flexibleFrom && api.key !== apiVersions.key
  )

export const decodeRequest = <Req, Res>(request: FakeRequest, api: Api<Req, Res>): Decoded<Req> =>
  api.request.decode(request.version, request.body)

/** The answer to ApiVersions: these APIs, in all versions we declare. */
export const offer = (
  request: FakeRequest,
  apis: ReadonlyArray<
    Api<never, never> | { readonly key: number; readonly versions: { readonly min: number; readonly max: number } }
  >,
  extra: Partial<Encoded<typeof apiVersions.response.fields>> = {}
): Buffer =>
  answer(request, apiVersions, {
    errorCode: 0,
    apiKeys: [apiVersions, ...apis].map((api) => ({
      apiKey: api.key,
      minVersion: api.versions.min,
      maxVersion: api.versions.max
    })),
    ...extra
  })

/** All APIs of this project are flexible from here; only what the tests use. */
const FLEXIBLE: ReadonlyMap<number, number> = new Map([[3, 9], [10, 3], [18, 3], [36, 2], [60, 0]])

const parse = (bytes: Buffer, socket: Socket, connection: number): FakeRequest => {
  const reader = new ByteReader(bytes)
  const key = reader.int16()
  const version = reader.int16()
  const correlationId = reader.int32()
  const length = reader.int16()
  const clientId = length < 0 ? "" : reader.text(length)
  if (version >= (FLEXIBLE.get(key) ?? Infinity)) reader.skipTaggedFields()
  return { key, version, correlationId, clientId, body: bytes.subarray(reader.position), socket, connection }
}

const serve = (socket: Socket, connection: number, handler: Handler, requests: Array<FakeRequest>): void => {
  let held: Buffer = Buffer.alloc(0)
  socket.on("error", () => undefined)
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 4 && held.length >= 4 + held.readInt32BE(0)) {
      const end = 4 + held.readInt32BE(0)
      const request = parse(held.subarray(4, end), socket, connection)
      held = held.subarray(end)
      requests.push(request)
      const bytes = handler(request)
      if (bytes !== undefined) socket.write(bytes)
    }
  })
}

const listen = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(port, "127.0.0.1", () => resolve((server.address() as { port: number }).port))
  })

/** Starts one; it is gone when the scope closes. `port` 0: any. */
export const fakeBroker = (handler: Handler, port = 0): Effect.Effect<FakeBroker, never, Scope.Scope> =>
  Effect.gen(function*() {
    const sockets = new Set<Socket>()
    const requests: Array<FakeRequest> = []
    let connections = 0
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on("close", () => sockets.delete(socket))
      serve(socket, ++connections, handler, requests)
    })
    const hangUp = () => {
      for (const socket of sockets) socket.destroy()
    }
    const stop = Effect.promise(() =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        hangUp()
      })
    )
    const bound = yield* Effect.acquireRelease(Effect.promise(() => listen(server, port)), () => stop)
    return {
      port: bound,
      address: `127.0.0.1:${bound}`,
      requests,
      connections: () => connections,
      openConnections: () => sockets.size,
      hangUp,
      stop
    }
  })
