/**
 * Any broker of a cluster: one with an open connection and little under way, then those known, in random order and
 * those that failed last at the end, then bootstrap.servers again (KIP-899), so that a cluster whose brokers have
 * all moved is found again.
 */
import { Effect, Random } from "effect"
import type { BrokerPool, Ready } from "./brokerPool.ts"
import { ConnectionError, type WireError } from "./errors.ts"
import { passesByItself } from "./retry.ts"
import { type ClientConfig, type HostPort, showHostPort } from "./settings.ts"

/** Of several failures the one a person should read: what needs a change comes before what may pass. */
const mostTelling = (errors: ReadonlyArray<WireError>): WireError =>
  errors.find((e) => !passesByItself(e)) ?? (errors.at(-1) as WireError)

const allFailed = (errors: ReadonlyArray<WireError>): WireError => {
  const telling = mostTelling(errors)
  if (errors.length === 1 || !(telling instanceof ConnectionError)) return telling
  return new ConnectionError({
    ...telling,
    what: `${telling.what} (no other of ${errors.length} addresses can be used either)`
  })
}

const candidates = (pool: BrokerPool, known: ReadonlyArray<HostPort>, config: ClientConfig) =>
  Effect.gen(function*() {
    const shuffled = yield* Random.shuffle(known)
    const healthy = shuffled.filter((node) => !pool.isFailing(node))
    const failing = shuffled.filter((node) => pool.isFailing(node))
    const bootstrap = known.length === 0 || config.rebootstrap ? yield* Random.shuffle(config.bootstrap) : []
    const all = [...healthy, ...failing, ...bootstrap]
    return new Map(all.map(({ host, port }) => [showHostPort({ host, port }), { host, port }] as const)).values()
  })

/** A connection to any broker, for this purpose. Fails when no address can be connected to. */
export const acquireAny = (
  pool: BrokerPool,
  known: ReadonlyArray<HostPort>,
  config: ClientConfig,
  purpose: string
): Effect.Effect<Ready, WireError> =>
  Effect.gen(function*() {
    const open = known.filter((node) => !pool.isFailing(node)).map((node) => pool.open(node, purpose))
    const idlest = open.filter((ready) => ready !== null).sort((a, b) => a.link.inflight - b.link.inflight)[0]
    if (idlest !== undefined) return idlest
    const errors: Array<WireError> = []
    for (const address of yield* candidates(pool, known, config)) {
      const ready = yield* Effect.result(pool.acquire(address, purpose))
      if (ready._tag === "Success") return ready.success
      errors.push(ready.failure)
    }
    return yield* Effect.fail(allFailed(errors))
  })
