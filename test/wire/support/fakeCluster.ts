/** Fake brokers that answer ApiVersions and Metadata by a script, and a quick client for them. */
import { Effect } from "effect"
import type { BrokerNode } from "../../../src/wire/cluster.ts"
import { makeCluster } from "../../../src/wire/clusterClient.ts"
import { apiVersions } from "../../../src/wire/messages/apiVersions.ts"
import { describeCluster } from "../../../src/wire/messages/describeCluster.ts"
import { findCoordinator } from "../../../src/wire/messages/findCoordinator.ts"
import { metadata } from "../../../src/wire/messages/metadata.ts"
import type { Encoded } from "../../../src/wire/schema.ts"
import { answer, type FakeBroker, fakeBroker, type FakeRequest, type Handler, offer } from "./fakeBroker.ts"

type MetadataValue = Encoded<typeof metadata.response.fields>
export const APIS = [metadata, findCoordinator, describeCluster]

/** What the fake cluster says; tests change it as they go. */
export interface Script {
  metadata: (request: FakeRequest) => Partial<MetadataValue>
  brokers: () => ReadonlyArray<Pick<BrokerNode, "id" | "port">>
  other: Handler
}

export const scripted = (script: Partial<Script>): Handler => (request) => {
  if (request.key === apiVersions.key) return offer(request, APIS)
  if (request.key === metadata.key) {
    return answer(request, metadata, {
      brokers: (script.brokers?.() ?? []).map((b) => ({ nodeId: b.id, host: "127.0.0.1", port: b.port, rack: null })),
      clusterId: "cluster-a",
      controllerId: 1,
      topics: [],
      ...script.metadata?.(request)
    })
  }
  return script.other?.(request)
}

export const described = (request: FakeRequest, throttleTimeMs = 0, clusterId = "c") =>
  answer(request, describeCluster, { throttleTimeMs, errorCode: 0, clusterId, brokers: [] })
export const ASK = { includeClusterAuthorizedOperations: false }
export const QUICK = {
  "retry.backoff.ms": 1,
  "retry.backoff.max.ms": 5,
  "reconnect.backoff.ms": 1,
  "reconnect.backoff.max.ms": 5
}

export const clientOf = (brokers: ReadonlyArray<FakeBroker>, settings = {}) =>
  makeCluster("east", { "bootstrap.servers": brokers.map((b) => b.address).join(","), ...QUICK, ...settings })

/** A free port that nothing listens on. */
export const deadBroker = Effect.gen(function*() {
  const broker = yield* fakeBroker(() => undefined)
  yield* broker.stop
  return broker
})

export const count = (broker: FakeBroker, key: number) =>
  broker.requests.filter((request) => request.key === key).length
