/**
 * InitProducerId with a transactional id, until it succeeds: takes the id over from whoever had it, has what was open
 * under it aborted, and fences every late request of before.
 *
 * Once it has succeeded no transaction of that id is unfinished and all its markers are in the logs: the coordinator
 * answers CONCURRENT_TRANSACTIONS until then. So what was unknown can be read from the target's log afterwards.
 */
import { Effect, Random } from "effect"
import type { Cluster, Destination } from "../wire/cluster.ts"
import { BrokerError, type WireError } from "../wire/errors.ts"
import { initProducerId } from "../wire/messages/initProducerId.ts"
import { CONCURRENT_TRANSACTIONS } from "./produceAnswers.ts"
import { ProducerRefused } from "./produceErrors.ts"
import type { Identity } from "./sequences.ts"

export interface TakeOverOptions {
  readonly cluster: Cluster
  readonly transactionalId: string
  /** transaction.timeout.ms for the transactions to come. */
  readonly transactionTimeoutMs: number
  readonly purpose: string
  readonly requestTimeoutMs: number
  readonly retryBackoffMs: number
  readonly retryBackoffMaxMs: number
  /** Called with the reason before each further try. */
  readonly onWait?: (reason: string) => Effect.Effect<void>
}

/** Errors that pass by themselves here; "fenced" can only come from a race with the abort that this call started. */
const passes = (error: WireError): boolean => {
  if (error._tag === "ConnectionError") return true
  return error._tag === "BrokerError" && ["retriable", "refresh", "coordinator", "fenced"].includes(error.class)
}

/** A pause that doubles from retryBackoffMs to retryBackoffMaxMs, x 0.8 to 1.2. */
export const backOff = (
  attempt: number,
  options: { readonly retryBackoffMs: number; readonly retryBackoffMaxMs: number }
): Effect.Effect<void> =>
  Effect.flatMap(
    Random.next,
    (drawn) =>
      Effect.sleep(
        Math.min(options.retryBackoffMaxMs, options.retryBackoffMs * 2 ** Math.min(attempt, 20)) * (0.8 + 0.4 * drawn)
      )
  )

export const coordinatorOf = (transactionalId: string): Destination => ({ kind: "transaction", key: transactionalId })

/** Runs until it has the id; may be interrupted. Fails only with what will not pass by itself. */
export const takeOver = (options: TakeOverOptions): Effect.Effect<Identity, ProducerRefused> =>
  Effect.gen(function*() {
    const { cluster, transactionalId } = options
    const once = cluster.request(coordinatorOf(transactionalId), initProducerId, {
      transactionalId,
      transactionTimeoutMs: options.transactionTimeoutMs
    }, {
      purpose: options.purpose,
      timeoutMs: options.requestTimeoutMs
    }).pipe(Effect.flatMap((answer) =>
      answer.errorCode === 0
        ? Effect.succeed({ producerId: answer.producerId, epoch: answer.producerEpoch })
        : Effect.fail(
          new BrokerError({
            api: "InitProducerId",
            code: answer.errorCode,
            subject: `transactional id ${transactionalId}`,
            detail: null
          })
        )
    ))
    for (let attempt = 0;; attempt++) {
      const result = yield* Effect.result(once)
      if (result._tag === "Success") return result.success
      const error = result.failure
      if (!passes(error)) return yield* new ProducerRefused({ what: error.message })
      if (options.onWait !== undefined) yield* options.onWait(error.message)
      const concurrent = error._tag === "BrokerError" && error.code === CONCURRENT_TRANSACTIONS
      if (!concurrent) yield* cluster.invalidateCoordinator(coordinatorOf(transactionalId))
      // An abort takes some milliseconds: the back-off stays short for it.
      yield* backOff(concurrent ? Math.min(attempt, 1) : attempt, options)
    }
  })
