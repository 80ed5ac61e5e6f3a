/**
 * Metrics to an OpenTelemetry collector (OTLP over HTTP), by the standard environment variables. Effect's own exporter
 * sends them; this file reads what says whether and where.
 *
 * - Nothing is sent unless OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is set, or
 *   OTEL_METRICS_EXPORTER names otlp (then to http://localhost:4318). OTEL_METRICS_EXPORTER=none and
 *   OTEL_SDK_DISABLED=true turn it off.
 * - OTEL_EXPORTER_OTLP_PROTOCOL (or _METRICS_PROTOCOL): http/protobuf (default) or http/json.
 * - OTEL_SERVICE_NAME ("onceover" by default), OTEL_RESOURCE_ATTRIBUTES, OTEL_METRIC_EXPORT_INTERVAL (10 s here), and
 *   OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION and _METRICS_TEMPORALITY_PREFERENCE as the specification has them.
 *
 * /metrics is served whatever these say. A collector that does not answer stops nothing: it is tried again after a
 * minute.
 */
import { Config, ConfigProvider, Effect, Layer, Schema, type Scope } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpMetrics, OtlpSerialization } from "effect/observability"

export class OtlpSettingsError extends Schema.TaggedError<OtlpSettingsError>()("OtlpSettingsError", {
  what: Schema.String
}) {
  override get message(): string {
    return this.what
  }
}

const DEFAULT_ENDPOINT = "http://localhost:4318"
const ENDPOINTS = ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"] as const
const PROTOCOLS = ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] as const

const variable = (name: string): Effect.Effect<string | null> =>
  Effect.map(Effect.orElseSucceed(Config.String(name), () => ""), (text) => text.trim() === "" ? null : text.trim())

interface Found {
  readonly name: string
  readonly value: string
}

/** The first of them that is set. */
const firstOf = (names: ReadonlyArray<string>): Effect.Effect<Found | null> =>
  Effect.gen(function*() {
    for (const name of names) {
      const value = yield* variable(name)
      if (value !== null) return { name, value }
    }
    return null
  })

const wrong = ({ name, value }: Found, allowed: string): OtlpSettingsError =>
  new OtlpSettingsError({
    what: `the environment variable ${name} is "${value.replace(/\/\/[^/]*@/, "//")}"; allowed: ${allowed}`
  })

/** Whether metrics are to be sent: what the exporter list says, else whether an address is given. */
const isWanted = (endpoint: Found | null): Effect.Effect<boolean, OtlpSettingsError> =>
  Effect.gen(function*() {
    const disabled = yield* variable("OTEL_SDK_DISABLED")
    if (disabled?.toLowerCase() === "true") return false
    const name = "OTEL_METRICS_EXPORTER"
    const value = yield* variable(name)
    if (value === null) return endpoint !== null
    const exporters = value.toLowerCase().split(",").map((one) => one.trim())
    if (exporters.some((one) => !["otlp", "none", "prometheus"].includes(one))) {
      return yield* wrong({ name, value }, "otlp, none, prometheus (/metrics, which is always served)")
    }
    return exporters.includes("otlp")
  })

const protocol: Effect.Effect<"http/protobuf" | "http/json", OtlpSettingsError> = Effect.gen(function*() {
  const found = yield* firstOf(PROTOCOLS)
  if (found === null || found.value === "http/protobuf") return "http/protobuf"
  return found.value === "http/json" ? found.value : yield* wrong(found, "http/protobuf, http/json")
})

/** What the exporter finds where the environment says nothing. */
const defaults = (endpoint: Found | null): Effect.Effect<Readonly<Record<string, string>>> =>
  Effect.map(variable("OTEL_RESOURCE_ATTRIBUTES"), (attributes) => ({
    OTEL_METRICS_EXPORTER: "otlp",
    ...(endpoint === null ? { OTEL_EXPORTER_OTLP_ENDPOINT: DEFAULT_ENDPOINT } : {}),
    ...(attributes?.includes("service.name=") === true ? {} : { OTEL_SERVICE_NAME: "onceover" })
  }))

/**
 * Sends the metrics of the current registry until the scope closes, and once more then (for 3 seconds at most).
 * Returns the address, without what may be secret in it; null: nothing is sent.
 */
export const exportMetrics = (version: string): Effect.Effect<string | null, OtlpSettingsError, Scope.Scope> =>
  Effect.gen(function*() {
    const endpoint = yield* firstOf(ENDPOINTS)
    if (!(yield* isWanted(endpoint))) return null
    const url = URL.parse(endpoint?.value ?? DEFAULT_ENDPOINT)
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
      return yield* wrong(endpoint as Found, "http://HOST:PORT or https://HOST:PORT")
    }
    const serialization = (yield* protocol) === "http/json"
      ? OtlpSerialization.layerJson
      : OtlpSerialization.layerProtobuf
    const environment = yield* ConfigProvider.ConfigProvider
    const provider = ConfigProvider.fromEnv({ env: yield* defaults(endpoint) })
    const layer = OtlpMetrics.layerFromConfig({ resource: { serviceVersion: version } }).pipe(
      Layer.provide(Layer.mergeAll(FetchHttpClient.layer, serialization)),
      Layer.provide(ConfigProvider.layer(ConfigProvider.orElse(environment, provider)))
    )
    // A variable that the exporter does not understand is a defect of its layer; its words name the variable.
    yield* Effect.catchDefect(Layer.build(layer), (defect) =>
      Effect.fail(
        new OtlpSettingsError({
          what: `an OTEL_ environment variable is wrong: ${defect instanceof Error ? defect.message : String(defect)}`
        })
      ))
    return `${url.origin}${url.pathname}`
  })
