/** Metrics to a collector, by the standard environment variables: a small collector here tells what came. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Metric, Scope } from "effect"
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { gunzipSync } from "node:zlib"
import { makeFlowMetrics } from "../../src/metrics/flowMetrics.ts"
import { exportMetrics } from "../../src/metrics/otlp.ts"

interface Request {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

const collector = (code = 200) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly requests: Array<Request>; readonly close: () => void }>(
      (resume) => {
        const requests: Array<Request> = []
        const server = createServer((request, response) => {
          const parts: Array<Buffer> = []
          request.on("data", (part: Buffer) => parts.push(part))
          request.on("end", () => {
            requests.push({ path: request.url ?? "", headers: request.headers, body: Buffer.concat(parts) })
            response.writeHead(code).end()
          })
        })
        server.listen(0, "127.0.0.1", () =>
          resume(Effect.succeed({
            url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
            requests,
            close: () => server.close()
          })))
      }
    ),
    (made) => Effect.sync(made.close)
  )

/** Exports under this environment and closes: what is sent at the close is what came. */
const exported = (env: Readonly<Record<string, string>>) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const metrics = yield* Effect.provideService(makeFlowMetrics("f", "share"), Scope.Scope, scope)
    metrics.recordsMirrored("east.orders", 3, 41, 1_000)
    metrics.replicationLatency("east.orders", 2, 1, 10)
    const address = yield* Effect.provideService(exportMetrics("1.2.3"), Scope.Scope, scope)
    yield* Scope.close(scope, Exit.void)
    return address
  }).pipe(
    Effect.provideService(Metric.MetricRegistry, new Map()),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
  )

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string }
}
interface Sent {
  readonly resourceMetrics: ReadonlyArray<{
    readonly resource: { readonly attributes: ReadonlyArray<Attribute> }
    readonly scopeMetrics: ReadonlyArray<{
      readonly metrics: ReadonlyArray<{
        readonly name: string
        readonly sum?: {
          readonly dataPoints: ReadonlyArray<
            { readonly asDouble: number; readonly attributes: ReadonlyArray<Attribute> }
          >
        }
        readonly histogram?: { readonly dataPoints: ReadonlyArray<{ readonly count: number }> }
      }>
    }>
  }>
}

const pairs = (attributes: ReadonlyArray<Attribute>) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]))

describe("OpenTelemetry export", () => {
  it.live("sends every metric with its labels to the collector that the environment names, as JSON where asked", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* collector()
      const address = yield* exported({
        OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/base`,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_HEADERS: "x-token=s%20ecret",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test"
      })
      assert.strictEqual(address, `${url}/base`)
      const [request] = requests
      if (request === undefined) return assert.fail("nothing came")
      assert.strictEqual(request.path, "/base/v1/metrics")
      assert.strictEqual(request.headers["x-token"], "s ecret")
      const { resourceMetrics: [sent] } = JSON.parse(request.body.toString()) as Sent
      assert.deepInclude(pairs(sent?.resource.attributes ?? []), {
        "service.name": "onceover",
        "service.version": "1.2.3",
        "deployment.environment": "test"
      })
      const metrics = sent?.scopeMetrics[0]?.metrics ?? []
      const mirrored = metrics.find(({ name }) => name === "onceover_records_mirrored_total")?.sum?.dataPoints[0]
      if (mirrored === undefined) return assert.fail("no such metric")
      assert.strictEqual(mirrored.asDouble, 41)
      assert.deepStrictEqual(pairs(mirrored.attributes), { flow: "f", topic: "east.orders", partition: "3" })
      const latency = metrics.find(({ name }) => name === "onceover_replication_latency_seconds")
      assert.strictEqual(latency?.histogram?.dataPoints[0]?.count, 10)
    })))

  it.live("speaks protobuf unless told otherwise, gzipped where asked, to the metrics' own address as it is", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* collector()
      yield* exported({
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${url}/here`,
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
        OTEL_RESOURCE_ATTRIBUTES: "service.name=mirror-7"
      })
      const [request] = requests
      assert.deepStrictEqual([request?.path, request?.headers["content-type"]], ["/here", "application/x-protobuf"])
      const body = gunzipSync(request?.body ?? Buffer.alloc(0)).toString("latin1")
      for (const part of ["mirror-7", "onceover_records_mirrored_total", "east.orders"]) assert.include(body, part)
    })))

  it.live("sends nothing where nothing asks for it, or where it is turned off", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* collector()
      const at = { OTEL_EXPORTER_OTLP_ENDPOINT: url }
      for (
        const env of [{}, { ...at, OTEL_METRICS_EXPORTER: "none" }, { ...at, OTEL_SDK_DISABLED: "true" }, {
          ...at,
          OTEL_METRICS_EXPORTER: "prometheus"
        }]
      ) assert.isNull(yield* exported(env))
      assert.lengthOf(requests, 0)
    })))

  it.live("takes the usual address where only the exporter is named", () =>
    Effect.map(
      exported({ OTEL_METRICS_EXPORTER: "otlp" }),
      (address) => assert.strictEqual(address, "http://localhost:4318/")
    ))

  it.live("is refused in a sentence that names the variable and what is allowed", () =>
    Effect.gen(function*() {
      const at = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }
      const cases: ReadonlyArray<readonly [Record<string, string>, string]> = [
        [
          { OTEL_EXPORTER_OTLP_ENDPOINT: "collector" },
          "the environment variable OTEL_EXPORTER_OTLP_ENDPOINT is \"collector\"; allowed: http://HOST:PORT"
        ],
        [
          { ...at, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
          "OTEL_EXPORTER_OTLP_PROTOCOL is \"grpc\"; allowed: http/protobuf, http/json"
        ],
        [
          { ...at, OTEL_METRICS_EXPORTER: "console" },
          "OTEL_METRICS_EXPORTER is \"console\"; allowed: otlp, none, prometheus"
        ],
        [{ OTEL_EXPORTER_OTLP_ENDPOINT: "grpc://user:hunter2@h:1" }, "OTEL_EXPORTER_OTLP_ENDPOINT is \"grpc://h:1\""],
        [{ ...at, OTEL_METRIC_EXPORT_INTERVAL: "soon" }, "OTEL_METRIC_EXPORT_INTERVAL"]
      ]
      for (const [env, words] of cases) assert.include((yield* Effect.flip(exported(env))).message, words)
    }))

  it.live("stops nothing when the collector refuses or does not answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { requests, url } = yield* collector(400)
      assert.isNotNull(yield* exported({ OTEL_EXPORTER_OTLP_ENDPOINT: url }))
      assert.isNotEmpty(requests)
      assert.isNotNull(yield* exported({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1" }))
    })))
})
