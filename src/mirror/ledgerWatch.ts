/** What a flow does about the ledger as a whole: it ends as soon as the ledger does, and for good where that must be. */
import { Effect, type Scope } from "effect"
import { type BindingCandidate, BindingStopped } from "../txn/binding.ts"
import { FlowStopped } from "./errors.ts"

/** Fails when the ledger cannot be read any more, also while no lane waits for it. */
export const watchLedger = ({ ledger }: BindingCandidate): Effect.Effect<never, BindingStopped, Scope.Scope> =>
  ledger === undefined
    ? Effect.never
    : Effect.flatMap(
      ledger,
      ({ readers }) =>
        Effect.andThen(
          Effect.all(readers.map((reader) => reader.ended), { concurrency: "unbounded", discard: true }),
          Effect.never
        )
    )

/** A flow that is started again forgets why it ended; this one must not be. */
export const stopsForGood = <E>(error: E): E | FlowStopped =>
  error instanceof BindingStopped && error.forGood === true ? new FlowStopped({ what: error.message }) : error
