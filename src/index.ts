/**
 * onceover as a library: the service inside another Effect program.
 *
 * ```ts
 * import { loadConfig, Mirror } from "onceover"
 * import { Effect, Layer } from "effect"
 *
 * const mirror = Layer.unwrap(Effect.map(loadConfig("onceover.yaml", process.env), Mirror.layer))
 * const program = Effect.gen(function*() {
 *   const { ended, status } = yield* Mirror
 *   yield* Effect.log((yield* status).flows.map((flow) => `${flow.name}: ${flow.state}`).join(", "))
 *   yield* ended
 * })
 * Effect.runPromise(Effect.scoped(program.pipe(Effect.provide(mirror))))
 * ```
 *
 * Guarantees: the layer is built when the first flow runs, and fails with ServiceError when none can; closing its scope
 * stops the flows as a signal stops the program. Logs go to the logger of the surrounding program, metrics to its
 * Metric.MetricRegistry. `http: { listen: false }` leaves out the HTTP server.
 *
 * What is exported here is the library; everything else may change with any version.
 */
import { Context, Effect, Layer } from "effect"
import type { ResolvedConfig } from "./config/types.ts"
import type { ServiceError } from "./mirror/errors.ts"
import { type RunningService, startService } from "./mirror/service.ts"

export { loadConfig, parseConfig } from "./config/load.ts"
export { ConfigError } from "./config/problems.ts"
export type { ResolvedConfig, ResolvedFlow } from "./config/types.ts"
export { readiness, StatusDocument, type StatusInput } from "./metrics/status.ts"
export { checkService } from "./mirror/check.ts"
export { ServiceError } from "./mirror/errors.ts"
/** Where positions and groups of the source are on the target, and back: what `onceover offsets` answers. */
export { type OffsetRow, type OffsetsQuestion, type OffsetsRequest, offsetsOf } from "./mirror/offsetsService.ts"
export { runService, type RunningService, startService } from "./mirror/service.ts"
export { VERSION } from "./version.ts"

/** A running service; see RunningService for what it offers. */
export class Mirror extends Context.Service<Mirror, RunningService>()("onceover/Mirror") {
  /** Every enabled flow of the configuration, until the layer's scope closes. */
  static readonly layer = (config: ResolvedConfig): Layer.Layer<Mirror, ServiceError> =>
    Layer.effect(
      Mirror,
      Effect.tap(startService(config, { untilCaughtUp: false }), (service) => service.started)
    )
}
