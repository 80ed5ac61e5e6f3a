/** The way between a worker and the brokers: every request takes its time; some are lost, some answers are, some come late. */
import { Effect, type Scope } from "effect"
import type { Embedded } from "../../src/embedded/embedded.ts"
import type { Fault, FaultHook, Passing } from "../../src/embedded/faults.ts"
import { type LinkDriver, makeEmbeddedPool } from "../../src/embedded/link.ts"
import { clusterOn } from "../../src/wire/clusterClient.ts"
import type { Cluster } from "../../src/wire/cluster.ts"
import { type ClientSettings, parseClientConfig, type SettingsError } from "../../src/wire/settings.ts"
import type { Dice } from "./dice.ts"
import type { History } from "./history.ts"
import type { Gate } from "./loop.ts"
import type { RequestFaults } from "./plan.ts"

const waitOf = (dice: Dice, latencyMs: number): Fault => ({
  kind: "delay",
  requestMs: dice.int(1, latencyMs),
  answerMs: dice.int(1, latencyMs)
})

/** Polls that wait, and those who tell that they live: losing them shows little and costs a log line each. */
const QUIET = new Set(["Fetch", "ShareFetch", "ShareGroupHeartbeat", "Metadata"])

const TXN_SHARE_ACKNOWLEDGE = "TxnShareAcknowledge"
const UNSUPPORTED_VERSION = 35

export interface Network {
  /** Clients that are gone: nothing of theirs arrives any more. */
  readonly cut: Set<string>
  /** "client cluster": nothing of theirs arrives there now, and they are not told. */
  readonly clogged: Set<string>
  /** "client cluster": the most that each way takes now, milliseconds. */
  readonly slowed: Map<string, number>
  /** Brokers that have not been upgraded yet: without KIP-1289, as in the middle of a rolling upgrade. */
  readonly old: Set<number>
  /** Faults are on. */
  rough: boolean
}

export interface FaultOptions {
  readonly cluster: string
  readonly dice: Dice
  readonly rates: RequestFaults
  readonly network: Network
  readonly history: History
  /** Something may go wrong because of this request. */
  readonly onRequest: (cluster: string, passing: Passing) => void
}

export const faultsOf = (options: FaultOptions): FaultHook => (passing) => {
  const { cluster, dice, history, network, rates } = options
  if (network.cut.has(passing.client)) return { kind: "refuse" }
  if (!network.rough) return waitOf(dice, 3)
  if (network.clogged.has(`${passing.client} ${cluster}`)) return { kind: "loseRequest", then: "silence" }
  options.onRequest(cluster, passing)
  if (network.old.has(passing.brokerId) && passing.apiName === TXN_SHARE_ACKNOWLEDGE) {
    return {
      kind: "answer",
      response: { throttleTimeMs: 0, errorCode: UNSUPPORTED_VERSION, topics: [], responses: [] }
    }
  }
  const slowMs = network.slowed.get(`${passing.client} ${cluster}`)
  if (slowMs !== undefined) return { kind: "delay", requestMs: dice.int(1, slowMs), answerMs: dice.int(1, slowMs) }
  const drawn = dice.next()
  const say = (what: string): void => {
    if (!QUIET.has(passing.apiName)) {
      history.add(passing.client, `${passing.apiName} to ${cluster}-${passing.brokerId}: ${what}`)
    }
  }
  const then = dice.chance(0.7) ? "close" as const : "silence" as const
  let limit = rates.loseRequest
  if (drawn < limit) {
    say("the request is lost")
    return { kind: "loseRequest", then }
  }
  if (drawn < (limit += rates.loseAnswer)) {
    say("the answer is lost")
    return { kind: "loseAnswer", then }
  }
  if (drawn < (limit += rates.late)) {
    const byMs = dice.int(10, 4_000)
    say(`lost for the client, arrives ${byMs} ms later`)
    return { kind: "late", byMs }
  }
  if (drawn < limit + rates.slow) {
    return { kind: "delay", requestMs: dice.int(1, rates.slowMs), answerMs: dice.int(1, rates.slowMs) }
  }
  return waitOf(dice, rates.latencyMs)
}

/** A client whose answers wait while its process is stopped. `onMistake`: it has made a request that cannot be written. */
export const clientOf = (
  embedded: Embedded,
  name: string,
  gate: Gate,
  settings: ClientSettings,
  onMistake: (mistake: unknown) => void = () => {}
): Effect.Effect<Cluster, SettingsError, Scope.Scope> =>
  Effect.gen(function*() {
    const { engine, nowMs, schedule } = embedded.driver
    const driver: LinkDriver = {
      engine: {
        state: engine.state,
        // One iterator for each look.
        get handlers() {
          return engine.handlers
        },
        connect: (...args) => engine.connect(...args),
        close: (...args) => engine.close(...args),
        send: (connection, sent, now) =>
          engine.send(connection, { ...sent, reply: (reply) => gate.pass(() => sent.reply(reply)) }, now)
      },
      nowMs,
      schedule,
      onMistake
    }
    const addresses = [...engine.state.brokers.values()].map((broker) => `${broker.host}:${broker.port}`)
    const config = yield* parseClientConfig({
      "client.id": name,
      ...settings,
      "bootstrap.servers": addresses.join(",")
    })
    return clusterOn(name, config, yield* makeEmbeddedPool(driver, name, config))
  })
