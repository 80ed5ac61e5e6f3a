/**
 * Which guarantee a run of a flow has, and whether another should be in force by now. A change is never made under a
 * lane: the run ends in order, no transaction is open then, and the next run chooses anew (service.ts).
 */
import { Effect, type Scope } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { BindingCandidate, BindingChoice } from "../txn/binding.ts"
import type { Cluster } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { apiVersions } from "../wire/messages/apiVersions.ts"
import type { SettingsError } from "../wire/settings.ts"
import { FlowStopped, GuaranteeChanged } from "./errors.ts"
import type { FlowHandle } from "./flow.ts"
import { silentHooks } from "./bindings.ts"
import { chooseGuarantee, connectFlow, type FlowClusters, reasonsOf, refusalOf } from "./flowSetup.ts"
import { claimInstance } from "./instance.ts"
import type { Log } from "./report.ts"

export interface Chosen {
  readonly candidate: BindingCandidate
  /** Something better was tried and could not be had. */
  readonly improvable: boolean
  /** The clusters' features, asked before the choice: what changes after it is seen. */
  readonly features: string | null
}

const wordsOf = (name: BindingCandidate["name"]): string => name === "at-least-once" ? name : `exactly-once (${name})`

const tell = (handle: FlowHandle, choice: BindingChoice, candidate: BindingCandidate): Effect.Effect<void> => {
  const { metrics, state } = handle
  const reasons = reasonsOf(choice)
  const { guarantee: effective, name } = candidate
  state.guarantee = { wanted: choice.wanted, effective, binding: name, reasons }
  metrics.guarantee({ wanted: choice.wanted, effective, binding: name === "at-least-once" ? "none" : name })
  return effective === choice.wanted
    ? Effect.logInfo(`guarantee in force: ${effective}${name === "at-least-once" ? "" : ` (${name})`}`)
    : Effect.logWarning(`${choice.wanted} is wanted, ${effective} is in force: ${reasons.join("; ")}`)
}

/** The finalized features, asked now: what `features` gives may be as old as metadata.max.age.ms. */
const featuresNow = (cluster: Cluster): Effect.Effect<string, WireError> =>
  Effect.gen(function*() {
    const answer = yield* cluster.request({ kind: "any" }, apiVersions, (version) =>
      version >= 3 ? { clientSoftwareName: "onceover", clientSoftwareVersion: "0.1.0" } : {})
    if (answer.errorCode !== 0) {
      return yield* new BrokerError({
        api: "ApiVersions",
        code: answer.errorCode,
        subject: cluster.name,
        detail: null
      })
    }
    return answer.finalizedFeatures.map(({ maxVersionLevel, name }) =>
      `${name}=${maxVersionLevel}`
    ).toSorted().join(" ")
  })

/** Of both ends; null: one of them cannot be asked now. */
const featuresOf = ({ source, target }: FlowClusters): Effect.Effect<string | null> =>
  Effect.all([featuresNow(source), featuresNow(target)]).pipe(
    Effect.map((both) => both.join(" / ")),
    Effect.catch(() => Effect.succeed(null))
  )

/** Fails where nothing that is allowed can hold. */
export const openGuarantee = (
  config: ResolvedConfig,
  handle: FlowHandle,
  clusters: FlowClusters,
  log: Log
): Effect.Effect<Chosen, FlowStopped | SettingsError, Scope.Scope> =>
  Effect.gen(function*() {
    const { flow, state } = handle
    const features = yield* featuresOf(clusters)
    const choice = yield* chooseGuarantee(config, flow, clusters, {
      log,
      ledgerMemory: handle.ledgerMemory,
      instance: yield* claimInstance(flow.name, config.instanceId),
      onStall: (stall) => {
        state.stall(
          `${stall.topic}-${stall.partition}`,
          `${stall.topic}-${stall.partition} takes nothing now: ${stall.reason}`
        )
        log("warn", `${stall.topic}-${stall.partition} on "${flow.target}" takes nothing now: ${stall.reason}`)
      },
      onRecover: (topic, partition, taken) => {
        state.stall(`${topic}-${partition}`, null)
        const now = taken ? "takes records again" : "is not waited for any more: the transaction has to be aborted"
        log("info", `${topic}-${partition} on "${flow.target}" ${now}`)
      },
      onWaiting: (transactionalId, reason) => {
        const what = `the transaction coordinator of ${transactionalId} on "${flow.target}"`
        state.stall(transactionalId, reason === null ? null : `${what} does not answer now: ${reason}`)
        if (reason === null) log("info", `${what} answers again`)
        else log("warn", `${what} does not answer now, and the lane waits for it: ${reason}`)
      }
    })
    const { candidate } = choice
    if (candidate === null) return yield* new FlowStopped({ what: refusalOf(choice) })
    yield* tell(handle, choice, candidate)
    return { candidate, improvable: choice.reasons.length > 0, features }
  })

/** What would be in force if the flow began now; on new connections, which know nothing of before. Null: cannot be told. */
const chosenNow = (
  config: ResolvedConfig,
  flow: ResolvedFlow,
  log: Log
): Effect.Effect<BindingChoice | null> =>
  Effect.scoped(Effect.gen(function*() {
    const clusters = yield* connectFlow(config, flow)
    return yield* chooseGuarantee(config, flow, clusters, { ...silentHooks, log, instance: "" })
  })).pipe(Effect.catch((error) =>
    Effect.as(Effect.logDebug(`which guarantee could hold cannot be told now: ${error.message}`), null)
  ))

export interface GuaranteeWatchOptions {
  readonly config: ResolvedConfig
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly chosen: Chosen
  readonly log: Log
}

/** While something better was refused: how often it is asked for again though no feature has changed, milliseconds. */
const IMPROVE_MS = 30_000

const changed = (chosen: Chosen, now: BindingChoice): GuaranteeChanged | null => {
  const { candidate } = now
  if (candidate === null) return new GuaranteeChanged({ what: refusalOf(now) })
  if (candidate.name === chosen.candidate.name) return null
  const reasons = reasonsOf(now)
  return new GuaranteeChanged({
    what: `${wordsOf(candidate.name)} takes the place of ${wordsOf(chosen.candidate.name)}${
      reasons.length === 0 ? "" : `: ${reasons.join("; ")}`
    }`
  })
}

/**
 * Looks at both clusters' features at the flow's refresh interval, and gives what another binding is to be in force
 * for; also where nothing that is allowed can hold any more.
 */
export const watchGuarantee = (options: GuaranteeWatchOptions): Effect.Effect<GuaranteeChanged> =>
  Effect.gen(function*() {
    const { chosen, clusters, config, flow, log } = options
    let before = chosen.features
    let sinceMs = 0
    while (true) {
      yield* Effect.sleep(flow.refreshTopicsIntervalMs)
      sinceMs += flow.refreshTopicsIntervalMs
      const now = yield* featuresOf(clusters)
      const differs = now !== null && before !== null && now !== before
      if (now !== null) before = now
      if (!differs && !(chosen.improvable && sinceMs >= IMPROVE_MS)) continue
      sinceMs = 0
      const choice = yield* chosenNow(config, flow, log)
      // Nothing at all: believed of clusters that have just said that they changed, not of one that is away.
      const change = choice === null || (choice.candidate === null && !differs) ? null : changed(chosen, choice)
      if (change !== null) return change
      if (differs) {
        log("info", `the clusters' features have changed (${before}); ${wordsOf(chosen.candidate.name)} stays in force`)
      }
    }
  })
