import { assert, describe, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { apiVersions } from "../../src/wire/messages/apiVersions.ts"
import { describeCluster } from "../../src/wire/messages/describeCluster.ts"
import { findCoordinator } from "../../src/wire/messages/findCoordinator.ts"
import { metadata } from "../../src/wire/messages/metadata.ts"
import { answer, fakeBroker, frame, offer } from "./support/fakeBroker.ts"
import { APIS, ASK, clientOf, count, deadBroker, described, QUICK, scripted } from "./support/fakeCluster.ts"

describe("finding the cluster", () => {
  it.live("works when only one of the bootstrap addresses is alive", () =>
    Effect.scoped(Effect.gen(function*() {
      const alive = yield* fakeBroker(scripted({}))
      const client = yield* clientOf([yield* deadBroker, alive, yield* deadBroker])
      assert.strictEqual(yield* client.clusterId, "cluster-a")
    })))

  it.live("says that nothing listens when all are down, and how many were tried", () =>
    Effect.scoped(Effect.gen(function*() {
      const client = yield* clientOf([yield* deadBroker, yield* deadBroker])
      const error = yield* Effect.flip(client.clusterId)
      assert.deepInclude(error, { _tag: "ConnectionError", kind: "refused", outcome: "unsent" })
      assert.include(error.message, "no other of 2 addresses")
    })))

  it.live("goes on past an address that does not resolve or does not speak Kafka", () =>
    Effect.scoped(Effect.gen(function*() {
      const web = yield* fakeBroker(() => Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))
      const alive = yield* fakeBroker(scripted({}))
      for (let i = 0; i < 5; i++) {
        const client = yield* makeCluster("east", {
          ...QUICK,
          "bootstrap.servers": `no-such-host.invalid:9092,${web.address},${alive.address}`
        })
        assert.strictEqual(yield* client.clusterId, "cluster-a")
      }
    })))

  it.live("fails with the settings' error before anything is connected", () =>
    Effect.scoped(Effect.gen(function*() {
      const error = yield* Effect.flip(makeCluster("east", { "bootstrap.servers": "a:1", "request.timeout.ms": "x" }))
      assert.strictEqual(error._tag, "SettingsError")
    })))

  it.live("starts again from bootstrap.servers when every broker it knew is gone", () =>
    Effect.scoped(Effect.gen(function*() {
      const brokers = () => [{ id: 1, port: current.port }]
      let current = yield* fakeBroker(scripted({ brokers, other: (request) => described(request) }))
      const bootstrap = yield* fakeBroker(
        scripted({ brokers, other: (request) => described(request, 0, "asked the bootstrap address") })
      )
      const client = yield* clientOf([bootstrap])
      assert.strictEqual((yield* client.request({ kind: "broker", id: 1 }, describeCluster, ASK)).clusterId, "c")
      yield* current.stop
      current = yield* fakeBroker(scripted({ brokers, other: (request) => described(request, 0, "moved") }))
      const moved = yield* client.retrying(client.request({ kind: "broker", id: 1 }, describeCluster, ASK))
      assert.strictEqual(moved.clusterId, "moved")
    })))

  it.live("asks another broker when one takes connections but answers nothing", () =>
    Effect.scoped(Effect.gen(function*() {
      const names = new Set<string>()
      const brokers = () => [{ id: 1, port: frozen.port }, { id: 2, port: alive.port }]
      const frozen = yield* fakeBroker((
        request
      ) => (request.key === metadata.key ? scripted({ brokers })(request) : undefined))
      const alive = yield* fakeBroker(scripted({ brokers, other: (request) => described(request, 0, "alive") }))
      const client = yield* clientOf([alive], {
        "socket.connection.setup.timeout.ms": 50,
        "request.timeout.ms": 30_000
      })
      yield* client.brokers
      for (let i = 0; i < 10; i++) {
        names.add((yield* client.request({ kind: "any" }, describeCluster, ASK, { purpose: `p${i}` })).clusterId)
      }
      assert.deepStrictEqual([...names], ["alive"])
      assert.strictEqual(frozen.connections(), 1, "once it is known to be silent it is asked last")
    })).pipe(Random.withSeed("frozen")))

  it.live("asks another broker after one did not answer a request in time", () =>
    Effect.scoped(Effect.gen(function*() {
      const brokers = () => [{ id: 1, port: frozen.port }, { id: 2, port: alive.port }]
      const frozen = yield* fakeBroker(scripted({ brokers }))
      const alive = yield* fakeBroker(scripted({ brokers, other: (request) => described(request, 0, "alive") }))
      const client = yield* clientOf([alive])
      const late = client.request({ kind: "broker", id: 1 }, describeCluster, ASK, { timeoutMs: 50 })
      assert.deepInclude(yield* Effect.flip(late), { _tag: "ConnectionError", kind: "timeout", outcome: "unknown" })
      const before = frozen.connections()
      for (let i = 0; i < 10; i++) {
        const answered = yield* client.request({ kind: "any" }, describeCluster, ASK, { purpose: `p${i}` })
        assert.strictEqual(answered.clusterId, "alive")
      }
      assert.strictEqual(frozen.connections(), before)
    })).pipe(Random.withSeed("silent")))

  it.live("refuses to go on when the addresses lead to another cluster", () =>
    Effect.scoped(Effect.gen(function*() {
      let clusterId = "cluster-a"
      const broker = yield* fakeBroker(scripted({ metadata: () => ({ clusterId }) }))
      const client = yield* clientOf([broker])
      yield* client.clusterId
      clusterId = "cluster-b"
      assert.include((yield* Effect.flip(client.allTopics)).message, "another cluster")
    })))
})

describe("versions", () => {
  it.live("fall back to what an old broker lists when it does not know our ApiVersions (KIP-511)", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const listed of [[{ apiKey: 18, minVersion: 0, maxVersion: 2 }], []]) {
        const asked: Array<number> = []
        const broker = yield* fakeBroker((request) => {
          if (request.key !== apiVersions.key) return scripted({})(request)
          asked.push(request.version)
          if (request.version > 2) {
            return frame(request, apiVersions.response.encode(0, { errorCode: 35, apiKeys: listed }), false)
          }
          return answer(request, apiVersions, { errorCode: 0, apiKeys: [{ apiKey: 3, minVersion: 0, maxVersion: 8 }] })
        })
        const client = yield* clientOf([broker])
        assert.strictEqual(yield* client.negotiate({ kind: "any" }, metadata), 8)
        assert.deepStrictEqual(asked, [4, listed.length > 0 ? 2 : 0])
      }
    })))

  it.live("that have nothing in common are an UnsupportedError that names both ranges, and nothing is sent", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker((request) => offer(request, [{ key: 60, versions: { min: 9, max: 10 } }]))
      const client = yield* clientOf([broker])
      const error = yield* Effect.flip(client.request({ kind: "any" }, describeCluster, ASK))
      assert.deepInclude(error, { _tag: "UnsupportedError", api: "DescribeCluster" })
      assert.match(error.message, /9 to 10.*0 to 2/)
      const missing = yield* Effect.flip(client.request({ kind: "any" }, findCoordinator, {}))
      assert.include(missing.message, "does not offer FindCoordinator")
      assert.strictEqual(count(broker, 60) + count(broker, 10), 0)
    })))

  it.live("can be held up and down by the caller, who may look at what was chosen", () =>
    Effect.scoped(Effect.gen(function*() {
      const broker = yield* fakeBroker(scripted({ other: (request) => described(request, 0, String(request.version)) }))
      const client = yield* clientOf([broker])
      const ask = (options: object) =>
        Effect.map(
          client.request(
            { kind: "any" },
            describeCluster,
            (version) => (version > 0 ? { ...ASK, endpointType: 1 } : ASK),
            options
          ),
          (a) => a.clusterId
        )
      assert.deepStrictEqual([yield* ask({}), yield* ask({ maxVersion: 1 }), yield* ask({ minVersion: 2 })], [
        "2",
        "1",
        "2"
      ])
      assert.strictEqual((yield* Effect.flip(ask({ minVersion: 3 })))._tag, "UnsupportedError")
    })))

  it.live("of features are the finalized ones, and are not kept while a broker does not know them yet", () =>
    Effect.scoped(Effect.gen(function*() {
      let epoch = -1
      const broker = yield* fakeBroker((request) => {
        const finalizedFeatures = epoch < 0 ? [] : [{ name: "share.version", maxVersionLevel: 2, minVersionLevel: 1 }]
        return offer(request, APIS, { finalizedFeaturesEpoch: epoch, finalizedFeatures })
      })
      const client = yield* clientOf([broker])
      assert.strictEqual((yield* client.features).size, 0)
      epoch = 7
      assert.deepStrictEqual([...(yield* client.features)], [["share.version", 2]])
      yield* client.features
      assert.strictEqual(count(broker, 18), 3, "one for the connection, one for each answer that was not kept")
    })))
})
