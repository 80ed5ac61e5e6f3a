import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createServer } from "node:net"
import { type Link, openLink } from "../../src/wire/connection.ts"
import { describeCluster } from "../../src/wire/messages/describeCluster.ts"
import { findCoordinator } from "../../src/wire/messages/findCoordinator.ts"
import { metadata } from "../../src/wire/messages/metadata.ts"
import { until } from "../kit/until.ts"
import { answer, fakeBroker, type FakeRequest, frame, type Handler } from "./support/fakeBroker.ts"

const PLAIN = { protocol: "PLAINTEXT", tls: null, sasl: null } as const
const LONG_MS = 50_000

const link = (port: number, host = "127.0.0.1") =>
  openLink({ host, port, clientId: "test", connectTimeoutMs: LONG_MS, maxAnswerBytes: 1_000_000, security: PLAIN })

const linkTo = (handler: Handler) =>
  Effect.flatMap(fakeBroker(handler), (broker) => Effect.map(link(broker.port), (opened) => ({ broker, opened })))

const ask = (opened: Link, key = "k", timeoutMs = LONG_MS) =>
  opened.send(findCoordinator, 4, { coordinatorKeys: [key] }, timeoutMs)

const found = (request: FakeRequest, host: string) =>
  answer(request, findCoordinator, {
    coordinators: [{ key: "k", nodeId: 1, host, port: 1, errorCode: 0, errorMessage: null }]
  })

const keyOf = (request: FakeRequest) =>
  findCoordinator.request.decode(request.version, request.body).coordinatorKeys[0] as string

/** The failure of one request to a server that does this with it. */
const failureOf = (handler: Handler) =>
  Effect.scoped(Effect.gen(function*() {
    const { opened } = yield* linkTo(handler)
    const error = yield* Effect.flip(ask(opened))
    assert.isFalse(opened.isOpen, "a connection in doubt is not used again")
    return error
  }))

describe("a connection", () => {
  it.live("gives each of many requests its own answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { opened } = yield* linkTo((request) => found(request, keyOf(request)))
      const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
      const answers = yield* Effect.forEach(keys, (key) => ask(opened, key), { concurrency: "unbounded" })
      assert.deepStrictEqual(answers.map((a) => a.coordinators[0]?.host), keys)
      assert.strictEqual(opened.inflight, 0)
    })))

  it.live("takes an answer that comes byte by byte, and one whose header has tagged fields nobody knows", () =>
    Effect.scoped(Effect.gen(function*() {
      const { opened } = yield* linkTo((request) => {
        const whole = frame(request, [
          Buffer.from([1, 9, 2, 0xab, 0xcd]),
          ...findCoordinator.response.encode(4, { coordinators: [] })
        ], false)
        for (const byte of whole) request.socket.write(Buffer.from([byte]))
      })
      assert.deepStrictEqual((yield* ask(opened)).coordinators, [])
    })))

  it.live("fails every request under way when the other side hangs up, however many there are", () =>
    Effect.scoped(Effect.gen(function*() {
      let seen = 0
      const { opened } = yield* linkTo((request) => {
        if (++seen === 20) request.socket.destroy()
      })
      const errors = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.flip(ask(opened)), {
        concurrency: "unbounded"
      })
      for (const error of errors) {
        assert.deepInclude(error, { _tag: "ConnectionError", kind: "closed", outcome: "unknown" })
      }
    })))

  it.live("that ends in the middle of an answer is a lost connection, with unknown outcome", () =>
    Effect.gen(function*() {
      const error = yield* failureOf((request) => {
        request.socket.write(found(request, "h").subarray(0, 12))
        request.socket.end()
      })
      assert.deepInclude(error, { _tag: "ConnectionError", kind: "closed", outcome: "unknown" })
      assert.include(error.message, "security.protocol")
    }))

  it.live("never waits longer than the deadline, and takes what else is under way down with it", () =>
    Effect.scoped(Effect.gen(function*() {
      const { opened } = yield* linkTo(() => undefined)
      const patient = yield* Effect.forkChild(Effect.flip(ask(opened)), { startImmediately: true })
      const late = yield* Effect.flip(ask(opened, "k", 50))
      assert.deepInclude(late, { _tag: "ConnectionError", kind: "timeout", outcome: "unknown" })
      assert.include(late.message, "FindCoordinator within 50 ms")
      assert.deepInclude(yield* Fiber.join(patient), { _tag: "ConnectionError", kind: "closed", outcome: "unknown" })
      assert.isFalse(opened.isOpen)
    })))

  it.live("does not believe an answer to a request that nobody asked", () =>
    Effect.gen(function*() {
      const error = yield* failureOf((request) =>
        found({ ...request, correlationId: request.correlationId + 1000 }, "h")
      )
      assert.strictEqual(error._tag, "ProtocolError")
      assert.include(error.message, "correlation id")
    }))

  it.live("does not wait for an answer of absurd or negative size", () =>
    Effect.gen(function*() {
      for (const size of [0x7fffffff, 2_000_000, -1, -2147483648, 0, 3]) {
        const error = yield* failureOf((request) => {
          const bytes = frame(request, findCoordinator.response.encode(4, { coordinators: [] }), true)
          bytes.writeInt32BE(size, 0)
          return bytes
        })
        assert.strictEqual(error._tag, "ProtocolError", String(size))
        assert.include(error.message, String(size))
      }
    }))

  it.live("says so when the other side speaks HTTP, SSH or TLS", () =>
    Effect.gen(function*() {
      assert.include(
        (yield* failureOf(() => Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))).message,
        "it speaks HTTP"
      )
      assert.include((yield* failureOf(() => Buffer.from("SSH-2.0-OpenSSH_9.6\r\n"))).message, "it speaks SSH")
      const tls = yield* failureOf(() => Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50]))
      assert.deepInclude(tls, { _tag: "ConnectionError", kind: "tls" })
      assert.include(tls.message, "security.protocol")
    }))

  it.live("refuses an answer that is cut short, longer than it says, or full of absurd counts", () =>
    Effect.gen(function*() {
      const good = (request: FakeRequest) => found(request, "host").subarray(9)
      const bodies: ReadonlyArray<(request: FakeRequest) => Buffer> = [
        (request) => good(request).subarray(0, 10),
        (request) => Buffer.concat([good(request), Buffer.from([0])]),
        () => Buffer.from([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        () => Buffer.alloc(0)
      ]
      for (const body of bodies) {
        assert.strictEqual((yield* failureOf((request) => frame(request, [body(request)], true)))._tag, "ProtocolError")
      }
    }))

  it.live("that was refused, or whose host has no address, says which, and that nothing was sent", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(() => undefined)
      yield* broker.stop
      const refused = yield* Effect.flip(link(broker.port))
      assert.deepInclude(refused, {
        _tag: "ConnectionError",
        kind: "refused",
        outcome: "unsent",
        address: broker.address
      })
      const nowhere = yield* Effect.flip(link(9092, "no-such-host.invalid"))
      assert.deepInclude(nowhere, { _tag: "ConnectionError", kind: "resolve", outcome: "unsent" })
    })))

  it.live("is given up when the handshake does not end in time", () =>
    Effect.scoped(Effect.gen(function*() {
      // Listens, and never says a word: TLS waits for the other side's greeting.
      const silent = yield* fakeBroker(() => undefined)
      const options = {
        host: "127.0.0.1",
        port: silent.port,
        clientId: "test",
        maxAnswerBytes: 1_000,
        connectTimeoutMs: 100
      }
      const error = yield* Effect.flip(openLink({ ...options, security: { protocol: "SSL", tls: {}, sasl: null } }))
      assert.deepInclude(error, { _tag: "ConnectionError", kind: "timeout", outcome: "unsent" })
      yield* Effect.promise(() => until(() => silent.openConnections() === 0, { what: "the socket to be closed" }))
    })))

  it.live("that is interrupted while it opens leaves no socket behind", () =>
    Effect.gen(function*() {
      const silent = yield* fakeBroker(() => undefined)
      const options = {
        host: "127.0.0.1",
        port: silent.port,
        clientId: "test",
        maxAnswerBytes: 1_000,
        connectTimeoutMs: LONG_MS
      }
      const opening = yield* Effect.forkChild(
        Effect.scoped(openLink({ ...options, security: { protocol: "SSL", tls: {}, sasl: null } }))
      )
      yield* Effect.promise(() => until(() => silent.openConnections() === 1, { what: "the connection" }))
      yield* Fiber.interrupt(opening)
      yield* Effect.promise(() => until(() => silent.openConnections() === 0, { what: "the socket to be closed" }))
    }))

  it.live("that is closed takes no request any more, and fails those under way", () =>
    Effect.gen(function*() {
      const broker = yield* fakeBroker(() => undefined)
      const { kept, waiting } = yield* Effect.scoped(Effect.gen(function*() {
        const kept = yield* link(broker.port)
        const waiting = yield* Effect.forkDetach(Effect.flip(ask(kept)), { startImmediately: true })
        return { kept, waiting }
      }))
      assert.deepInclude(yield* Fiber.join(waiting), { _tag: "ConnectionError", kind: "closed", outcome: "unknown" })
      assert.deepInclude(yield* Effect.flip(ask(kept)), { _tag: "ConnectionError", kind: "closed", outcome: "unsent" })
    }))

  it.live("does not take back a request whose caller was interrupted, and goes on", () =>
    Effect.scoped(Effect.gen(function*() {
      const first: Array<FakeRequest> = []
      const { opened } = yield* linkTo((request) => {
        if (keyOf(request) !== "slow") return found(request, "second")
        first.push(request)
        return undefined
      })
      const slow = yield* Effect.forkChild(ask(opened, "slow"), { startImmediately: true })
      yield* Effect.promise(() => until(() => first.length === 1, { what: "the request" }))
      yield* Fiber.interrupt(slow)
      assert.strictEqual(opened.inflight, 1)
      const request = first[0] as FakeRequest
      request.socket.write(found(request, "first"))
      assert.strictEqual((yield* ask(opened, "quick")).coordinators[0]?.host, "second")
      assert.strictEqual(opened.inflight, 0)
    })))

  it.live("a request that cannot be encoded is a typed failure and leaves the connection alone", () =>
    Effect.scoped(Effect.gen(function*() {
      const { opened } = yield* linkTo((request) => found(request, "h"))
      const error = yield* Effect.flip(
        opened.send(metadata, 3, { topics: null, allowAutoTopicCreation: false }, LONG_MS)
      )
      assert.strictEqual(error._tag, "ProtocolError")
      assert.isTrue(opened.isOpen)
      assert.strictEqual((yield* ask(opened)).coordinators.length, 1)
    })))

  it.live("skips the tag section of a flexible answer's header", () =>
    Effect.scoped(Effect.gen(function*() {
      const { opened } = yield* linkTo((request) =>
        answer(request, describeCluster, { errorCode: 0, clusterId: "c", brokers: [] })
      )
      const described = yield* opened.send(describeCluster, 0, { includeClusterAuthorizedOperations: false }, LONG_MS)
      assert.strictEqual(described.clusterId, "c")
    })))

  it.live("to a server that ends its side at once is a lost connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = createServer({ allowHalfOpen: true }, (socket) => socket.on("error", () => undefined).end())
      const port = yield* Effect.acquireRelease(
        Effect.promise(() =>
          new Promise<number>((resolve) =>
            server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port))
          )
        ),
        () => Effect.sync(() => server.close())
      )
      const error = yield* Effect.flip(Effect.flatMap(link(port), (opened) => ask(opened)))
      assert.deepInclude(error, { _tag: "ConnectionError", kind: "closed" })
    })))
})
