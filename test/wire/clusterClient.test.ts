import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import { LASTING } from "../../src/wire/brokerPool.ts"
import { describeCluster } from "../../src/wire/messages/describeCluster.ts"
import { findCoordinator } from "../../src/wire/messages/findCoordinator.ts"
import { metadata } from "../../src/wire/messages/metadata.ts"
import { ZERO_UUID } from "../../src/wire/schema.ts"
import { until } from "../kit/until.ts"
import { answer, decodeRequest, fakeBroker } from "./support/fakeBroker.ts"
import { ASK, clientOf, count, deadBroker, described, scripted } from "./support/fakeCluster.ts"

describe("connections", () => {
  it.live("are one per broker and purpose, opened once for all who wait", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({ other: (request) => described(request) }))
      const client = yield* clientOf([broker])
      const ask = (purpose: string) => client.request({ kind: "any" }, describeCluster, ASK, { purpose })
      yield* Effect.forEach(["produce", "fetch", "produce", "fetch", "produce"], ask, { concurrency: "unbounded" })
      assert.strictEqual(broker.connections(), 2)
      yield* client.release("fetch")
      yield* Effect.promise(() => until(() => broker.openConnections() === 1, { what: "one connection to be closed" }))
      yield* ask("produce")
      assert.strictEqual(broker.connections(), 2)
    })))

  it.live("of one purpose do not wait for another's long poll", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(
        scripted({ other: (request) => (request.connection === 1 ? undefined : described(request)) })
      )
      const client = yield* clientOf([broker])
      yield* Effect.forkChild(client.request({ kind: "any" }, describeCluster, ASK, { purpose: "poll" }))
      yield* Effect.promise(() => until(() => count(broker, 60) === 1, { what: "the long poll" }))
      assert.strictEqual(
        (yield* client.request({ kind: "any" }, describeCluster, ASK, { purpose: "produce" })).clusterId,
        "c"
      )
    })))

  it.live("that broke are opened again by the next request, and the one under way is not sent twice", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({
        other: (request) => {
          if (request.connection > 1) return described(request)
          request.socket.destroy()
          return undefined
        }
      }))
      const client = yield* clientOf([broker])
      const ask = client.request({ kind: "any" }, describeCluster, ASK)
      assert.deepInclude(yield* Effect.flip(ask), { _tag: "ConnectionError", kind: "closed", outcome: "unknown" })
      assert.strictEqual(count(broker, 60), 1)
      assert.strictEqual((yield* ask).clusterId, "c")
      assert.strictEqual(broker.connections(), 2)
    })))

  it.live("are closed when idle, and opened again when needed", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({ other: (request) => described(request) }))
      const client = yield* clientOf([broker], { "connections.max.idle.ms": 100 })
      const ask = client.request({ kind: "any" }, describeCluster, ASK)
      yield* ask
      yield* Effect.promise(() =>
        until(() => broker.openConnections() === 0, { what: "the idle connection to be closed" })
      )
      yield* ask
      assert.strictEqual(broker.connections(), 2)
    })))

  it.live("of a share session stay open however idle: with them the broker would take back what is held", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({ other: (request) => described(request) }))
      const client = yield* clientOf([broker], { "connections.max.idle.ms": 100 })
      const ask = (purpose: string) => client.request({ kind: "any" }, describeCluster, ASK, { purpose })
      yield* ask(`${LASTING}member:1`)
      for (const connections of [2, 3]) {
        yield* ask("control")
        assert.strictEqual(broker.connections(), connections)
        yield* Effect.promise(() => until(() => broker.openConnections() <= 1, { what: "the idle one to be closed" }))
      }
      yield* ask(`${LASTING}member:1`)
      assert.strictEqual(broker.connections(), 3)
      yield* client.release(`${LASTING}member:1`)
      yield* Effect.promise(() =>
        until(() => broker.openConnections() === 0, { what: "the released one to be closed" })
      )
    })))

  it.live("are all closed with the scope, those being opened too, and a request then fails at once", () =>
    Effect.gen(function*() {
      const silent = yield* fakeBroker(() => undefined)
      const { client, waiting } = yield* Effect.scoped(Effect.gen(function*() {
        const client = yield* clientOf([silent])
        const waiting = yield* Effect.forkDetach(Effect.flip(client.clusterId))
        yield* Effect.promise(() => until(() => silent.requests.length === 1, { what: "the first request" }))
        return { client, waiting }
      }))
      assert.strictEqual((yield* Fiber.join(waiting))._tag, "ConnectionError")
      yield* Effect.promise(() => until(() => silent.openConnections() === 0, { what: "the connection to be closed" }))
      assert.include((yield* Effect.flip(client.clusterId)).message, "closed")
    }))

  it.live("serve whoever says goodbye when the scope closes, be it on one that was opened before or on a new one", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({ other: (request) => described(request) }))
      const said: Array<string> = []
      yield* Effect.scoped(Effect.gen(function*() {
        const client = yield* clientOf([broker])
        const ask = (purpose: string) =>
          Effect.map(
            client.request({ kind: "any" }, describeCluster, ASK, { purpose, timeoutMs: 10_000 }),
            ({ clusterId }) => said.push(`${purpose} ${clusterId}`)
          )
        yield* Effect.addFinalizer(() => Effect.ignore(Effect.andThen(ask("known"), ask("new"))))
        // Behind the finalizer: a scope closes the newest first.
        yield* ask("known")
      }))
      assert.deepStrictEqual(said, ["known c", "known c", "new c"])
      assert.strictEqual(broker.connections(), 2)
      yield* Effect.promise(() => until(() => broker.openConnections() === 0, { what: "all to be closed" }))
    })))

  it.live("that wait for their back-off when the scope closes do not leave anybody waiting", () =>
    Effect.gen(function*() {
      const dead = yield* deadBroker
      const waiting = yield* Effect.scoped(Effect.gen(function*() {
        const client = yield* clientOf([dead], { "reconnect.backoff.ms": 40_000, "reconnect.backoff.max.ms": 40_000 })
        yield* Effect.flip(client.clusterId)
        return yield* Effect.forkDetach(Effect.flip(client.clusterId), { startImmediately: true })
      }))
      assert.include((yield* Fiber.join(waiting)).message, "closed")
    }).pipe(Random.withSeed("back-off")))

  it.live("to a broker that never answers end with the request's time", () =>
    Effect.scoped(Effect.gen(function*() {
      const silent = yield* fakeBroker(() => undefined)
      const client = yield* clientOf([silent], { "request.timeout.ms": 80, "socket.connection.setup.timeout.ms": 80 })
      assert.deepInclude(yield* Effect.flip(client.request({ kind: "any" }, describeCluster, ASK)), {
        _tag: "ConnectionError",
        kind: "timeout"
      })
    })))

  it.live("send nothing more while the broker's quota says so (KIP-219), on that purpose only", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(
        scripted({ other: (request) => described(request, request.connection === 1 ? 3_600_000 : 0) })
      )
      const client = yield* clientOf([broker])
      const ask = (purpose: string) =>
        client.request({ kind: "any" }, describeCluster, ASK, { purpose, timeoutMs: 200 })
      yield* ask("produce")
      const error = yield* Effect.flip(ask("produce"))
      assert.deepInclude(error, { _tag: "ConnectionError", kind: "timeout", outcome: "unsent" })
      assert.include(error.message, "quota")
      assert.strictEqual((yield* ask("fetch")).clusterId, "c")
      assert.strictEqual(count(broker, 60), 2)
    })))
})

const topicNamed = (name: string, leaderId: number, leaderEpoch: number, topicId = "AAAAAAAAAAAAAAAAAAAAAQ") => ({
  errorCode: 0,
  name,
  topicId,
  isInternal: false,
  topicAuthorizedOperations: -2147483648,
  partitions: [{
    errorCode: leaderId < 0 ? 5 : 0,
    partitionIndex: 0,
    leaderId,
    leaderEpoch,
    replicaNodes: [1],
    isrNodes: [1]
  }]
})

describe("leaders and coordinators", () => {
  it.live("a leader is asked once, waited for while there is none, and asked anew when told so", () =>
    Effect.scoped(Effect.gen(function*() {
      const leaders = [-1, -1, 1, 2]
      let asked = 0
      const broker = yield* fakeBroker(
        scripted({
          metadata: () => ({ topics: [topicNamed("t", leaders[Math.min(asked, 3)] as number, 5 + asked++)] })
        })
      )
      const client = yield* clientOf([broker])
      assert.strictEqual((yield* client.leader("t", 0)).leader, 1)
      assert.strictEqual((yield* client.leader("t", 0)).leader, 1)
      assert.strictEqual(asked, 3)
      yield* client.invalidate("t")
      assert.deepInclude(yield* client.leader("t", 0), { leader: 2, leaderEpoch: 8 })
    })))

  it.live("a leader that stays away is the broker's error, within default.api.timeout.ms", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({ metadata: () => ({ topics: [topicNamed("t", -1, 5)] }) }))
      const client = yield* clientOf([broker], { "default.api.timeout.ms": 60 })
      assert.deepInclude(yield* Effect.flip(client.leader("t", 0)), { _tag: "BrokerError", code: 5, subject: "t-0" })
      assert.deepInclude(yield* Effect.flip(client.leader("t", 1)), { _tag: "BrokerError", code: 3, subject: "t-1" })
    })))

  it.live("topics that do not exist are absent, those one may not see stop no other and are an error when asked alone", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({
        metadata: (request) => ({
          topics: (decodeRequest(request, metadata).topics ?? []).map((t) => ({
            ...topicNamed(t.name as string, 1, 0),
            ...(t.name === "gone" ? { errorCode: 3, topicId: ZERO_UUID, partitions: [] } : {}),
            ...(t.name === "secret" ? { errorCode: 29, topicId: ZERO_UUID, partitions: [] } : {})
          }))
        })
      }))
      const client = yield* clientOf([broker])
      assert.deepStrictEqual([...(yield* client.topics(["t", "gone"])).keys()], ["t"])
      assert.deepStrictEqual([...(yield* client.topics(["t", "secret", "gone"])).keys()], ["t"])
      const error = yield* Effect.flip(client.topics(["secret"]))
      assert.deepInclude(error, { _tag: "BrokerError", code: 29, subject: "topic secret" })
      assert.isFalse(
        broker.requests.some((r) => r.key === metadata.key && decodeRequest(r, metadata).allowAutoTopicCreation),
        "asking must not create topics"
      )
    })))

  it.live("a topic is known by its id, asked when unknown, null when gone", () =>
    Effect.scoped(Effect.gen(function*() {
      const ID = "AAAAAAAAAAAAAAAAAAAAAQ"
      const broker = yield* fakeBroker(scripted({
        metadata: (request) => {
          const id = decodeRequest(request, metadata).topics?.[0]?.topicId
          return {
            topics: [
              id === ID
                ? topicNamed("t", 1, 0)
                : { ...topicNamed("", 1, 0, id), name: null, errorCode: 100, partitions: [] }
            ]
          }
        }
      }))
      const client = yield* clientOf([broker])
      assert.strictEqual((yield* client.topicById(ID))?.name, "t")
      yield* client.topicById(ID)
      assert.strictEqual(count(broker, metadata.key), 1)
      assert.isNull(yield* client.topicById("AAAAAAAAAAAAAAAAAAAAAg"))
    })))

  it.live("a coordinator is waited for while it loads, kept, and asked anew when told so", () =>
    Effect.scoped(Effect.gen(function*() {
      const errors = [15, 14, 0, 0]
      const coordinator = yield* fakeBroker(scripted({ other: (request) => described(request, 0, "the coordinator") }))
      const broker = yield* fakeBroker(scripted({
        other: (request) => {
          const errorCode = errors.shift() ?? 0
          const [key] = decodeRequest(request, findCoordinator).coordinatorKeys
          return answer(request, findCoordinator, {
            coordinators: [{
              key: key as string,
              nodeId: 9,
              host: "127.0.0.1",
              port: coordinator.port,
              errorCode,
              errorMessage: null
            }]
          })
        }
      }))
      const client = yield* clientOf([broker])
      const to = { kind: "group", key: "g" } as const
      const ask = Effect.map(client.request(to, describeCluster, ASK), (a) => a.clusterId)
      assert.strictEqual(yield* ask, "the coordinator")
      yield* ask
      assert.strictEqual(count(broker, findCoordinator.key), 3)
      yield* client.invalidateCoordinator(to)
      yield* ask
      assert.strictEqual(count(broker, findCoordinator.key), 4)
    })))

  it.live("a coordinator that one may not ask for is the broker's error, with the group's name", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({
        other: (request) =>
          answer(request, findCoordinator, {
            coordinators: [{ key: "g", nodeId: -1, host: "", port: -1, errorCode: 30, errorMessage: null }]
          })
      }))
      const client = yield* clientOf([broker])
      const error = yield* Effect.flip(client.request({ kind: "group", key: "g" }, describeCluster, ASK))
      assert.deepInclude(error, { _tag: "BrokerError", code: 30, subject: "group g" })
    })))
})
