/**
 * Connections by broker and purpose, opened when first needed: a long poll on one purpose never blocks another.
 *
 * Guarantees: opening is done once for all who wait for it, and goes on when one of them is interrupted; a broker
 * that cannot be reached is tried again after reconnect.backoff.ms, doubling to reconnect.backoff.max.ms, full
 * jitter; an idle connection is closed after connections.max.idle.ms (but LASTING ones); one whose SASL session ends
 * soon is replaced and closed when its last answer is in; everything is closed with the scope of the pool, in the
 * pool's turn: what was acquired after it and says goodbye when the scope closes can still be heard.
 */
import { Deferred, Effect, Exit, Scope } from "effect"
import { type Link, openLink } from "./connection.ts"
import { ConnectionError, type WireError } from "./errors.ts"
import { askOffers, type Offers } from "./offers.ts"
import { backoffCeilingMs, backoffMs, nowMs } from "./retry.ts"
import type { Security } from "./security.ts"
import { type ClientConfig, type HostPort, showHostPort } from "./settings.ts"

/**
 * How the purpose of connections begins that are closed by `release` only, however idle: a broker ties a share session
 * to its connection, and gives to others what is held in it when that closes.
 */
export const LASTING = "share:"

/** What is used of a connection; a cluster without sockets (src/embedded) has its own. */
export type LinkPort = Pick<
  Link,
  "address" | "isOpen" | "isExpiring" | "inflight" | "idleMs" | "send" | "sendRaw" | "fail"
>

/** A connection that has said what it offers. */
export interface Ready {
  readonly link: LinkPort
  readonly offers: Offers
  readonly scope: Scope.Closeable
  /** KIP-219: no request before this monotonic time. */
  throttledUntilMs: number
}

interface Slot {
  readonly purpose: string
  readonly address: string
  readonly opened: Deferred.Deferred<Ready, WireError>
  ready: Ready | null
}

interface Health {
  failures: number
  notBeforeMs: number
}

export interface BrokerPool {
  /** The connection to this address for this purpose; opened when there is none. */
  readonly acquire: (address: HostPort, purpose: string) => Effect.Effect<Ready, WireError>
  /** An open connection to this address, if there is one. */
  readonly open: (address: HostPort, purpose: string) => Ready | null
  /** Whether the last attempt to reach this address failed, or a request there was not answered in time. */
  readonly isFailing: (address: HostPort) => boolean
  readonly release: (purpose: string) => Effect.Effect<void>
}

const usable = (slot: Slot): boolean => slot.ready === null || (slot.ready.link.isOpen && !slot.ready.link.isExpiring)

export const makeBrokerPool = (
  config: ClientConfig,
  security: Security
): Effect.Effect<BrokerPool, never, Scope.Scope> =>
  Effect.gen(function*() {
    // Connections are opened late, and a scope closes the newest first: in the caller's scope they would be gone first.
    const poolScope = yield* Scope.fork(yield* Effect.scope)
    const slots = new Map<string, Slot>()
    const retiring = new Set<Ready>()
    const health = new Map<string, Health>()
    /** Addresses where a request was not answered, until one is answered again. */
    const silent = new Set<string>()
    /** Slots somebody may be waiting for. */
    const opening = new Set<Slot>()
    let closed = false
    const closedError = (address: string) =>
      new ConnectionError({ address, kind: "closed", outcome: "unsent", what: "the client is closed" })
    // The first finalizer, so the last to run. A fiber that is ended before its first step runs nothing of its
    // own: what it should have told is told here.
    yield* Scope.addFinalizer(
      poolScope,
      Effect.sync(() => {
        closed = true
        for (const slot of opening) Deferred.doneUnsafe(slot.opened, Effect.fail(closedError(slot.address)))
      })
    )

    const close = (ready: Ready) => Scope.close(ready.scope, Exit.void)
    const retire = (slot: Slot) => {
      if (slot.ready === null) return Effect.void
      if (!slot.ready.link.isOpen || slot.ready.link.inflight === 0) return close(slot.ready)
      retiring.add(slot.ready)
      return Effect.void
    }

    const connectTimeoutMs = (address: string) =>
      backoffCeilingMs(health.get(address)?.failures ?? 0, config.connectTimeoutMs, config.connectTimeoutMaxMs)

    const openFresh = (address: HostPort, shown: string, scope: Scope.Closeable): Effect.Effect<Ready, WireError> =>
      Effect.gen(function*() {
        const wait = (health.get(shown)?.notBeforeMs ?? 0) - (yield* nowMs)
        if (wait > 0) yield* Effect.sleep(wait)
        const timeoutMs = connectTimeoutMs(shown)
        const link = yield* openLink({
          ...address,
          clientId: config.clientId,
          connectTimeoutMs: timeoutMs,
          maxAnswerBytes: config.maxAnswerBytes,
          security,
          onTimeout: () => silent.add(shown)
        }).pipe(Scope.provide(scope))
        const offers = yield* askOffers(link, timeoutMs)
        return { link, offers, scope, throttledUntilMs: 0 }
      })

    const noteFailure = (shown: string) =>
      Effect.gen(function*() {
        const failures = health.get(shown)?.failures ?? 0
        const wait = yield* backoffMs(failures, config.reconnectBackoffMs, config.reconnectBackoffMaxMs)
        health.set(shown, { failures: failures + 1, notBeforeMs: (yield* nowMs) + wait })
      })

    const open = (key: string, slot: Slot, address: HostPort) =>
      Effect.gen(function*() {
        const scope = yield* Scope.fork(poolScope)
        const result = yield* Effect.exit(openFresh(address, slot.address, scope))
        if (Exit.isSuccess(result)) {
          health.delete(slot.address)
          silent.delete(slot.address)
          slot.ready = result.value
          // Released while it was being opened: nobody will look for it here again.
          if (slots.get(key) !== slot) yield* retire(slot)
        } else {
          yield* noteFailure(slot.address)
          if (slots.get(key) === slot) slots.delete(key)
          yield* Scope.close(scope, Exit.void)
        }
        opening.delete(slot)
        yield* Deferred.done(slot.opened, result)
      })

    const acquire = (address: HostPort, purpose: string): Effect.Effect<Ready, WireError> =>
      Effect.gen(function*() {
        const shown = showHostPort(address)
        if (closed) return yield* Effect.fail(closedError(shown))
        const key = `${purpose}\n${shown}`
        let slot = slots.get(key)
        if (slot !== undefined && !usable(slot)) {
          slots.delete(key)
          yield* retire(slot)
          slot = slots.get(key)
        }
        if (slot === undefined) {
          slot = { purpose, address: shown, opened: Deferred.makeUnsafe<Ready, WireError>(), ready: null }
          slots.set(key, slot)
          opening.add(slot)
          yield* open(key, slot, address).pipe(Effect.forkIn(poolScope))
        }
        return slot.ready ?? (yield* Deferred.await(slot.opened))
      })

    const release = (purpose: string) =>
      Effect.suspend(() => {
        const mine = [...slots].filter(([, slot]) => slot.purpose === purpose)
        for (const [key] of mine) slots.delete(key)
        return Effect.forEach(mine, ([, slot]) => (slot.ready === null ? Effect.void : close(slot.ready)), {
          discard: true
        })
      })

    const sweep = Effect.gen(function*() {
      for (const ready of [...retiring]) {
        if (ready.link.isOpen && ready.link.inflight > 0) continue
        retiring.delete(ready)
        yield* close(ready)
      }
      for (const [key, slot] of [...slots]) {
        const ready = slot.ready
        if (ready === null) continue
        const idle = ready.link.idleMs >= config.idleMs && !slot.purpose.startsWith(LASTING)
        if (ready.link.isOpen && (ready.link.inflight > 0 || !idle)) continue
        slots.delete(key)
        yield* close(ready)
      }
    })
    const sweepEveryMs = Math.min(5_000, Math.max(50, config.idleMs / 4))
    // It cannot fail, so nobody has to join it; it ends with the scope.
    yield* Effect.forkIn(Effect.forever(Effect.andThen(Effect.sleep(sweepEveryMs), sweep)), poolScope)

    return {
      acquire,
      open: (address, purpose) => {
        const slot = slots.get(`${purpose}\n${showHostPort(address)}`)
        return slot === undefined || slot.ready === null || !usable(slot) ? null : slot.ready
      },
      isFailing: (address) => health.has(showHostPort(address)) || silent.has(showHostPort(address)),
      release
    }
  })

/** Fails when an effect that has not sent anything yet takes too long. */
export const unsentWithin = <A, R>(
  effect: Effect.Effect<A, WireError, R>,
  timeoutMs: number,
  address: string,
  what: string
): Effect.Effect<A, WireError, R> =>
  effect.pipe(Effect.timeoutOrElse({
    duration: Math.max(1, timeoutMs),
    orElse: () =>
      Effect.fail(
        new ConnectionError({
          address,
          kind: "timeout",
          outcome: "unsent",
          what: `${what} within ${Math.round(timeoutMs)} ms`
        })
      )
  }))
