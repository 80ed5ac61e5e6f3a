/**
 * At least once: an idempotent producer, and acknowledgements after the produce is confirmed. There is no transaction
 * behind it: what was produced stays, so a lane that stops between the two mirrors those records again.
 */
import { Effect } from "effect"
import type { Binding, BindingCandidate, BoundTransaction } from "./binding.ts"
import type { Cluster } from "../wire/cluster.ts"
import { makeProducer, type Producer, type ProducerOptions } from "./producer.ts"

export const atLeastOnceBinding = (producer: Producer): Binding => {
  const transaction: BoundTransaction = {
    produce: producer.produce,
    // A note that is refused costs the knowledge of where records are, nothing else.
    stage: (_ranges, _outputs, notes = []) => Effect.asVoid(producer.produce(notes)),
    commit: Effect.succeed({ kind: "committed" }),
    // The lane acknowledges nothing then; the records come again, which is what this guarantee allows.
    abort: Effect.succeed({ kind: "aborted", reason: "given up" })
  }
  return {
    name: "at-least-once",
    guarantee: "at-least-once",
    settlesItself: false,
    start: Effect.void,
    triage: (ranges) => Effect.succeed({ done: [], wait: [], ours: ranges }),
    begin: Effect.succeed(transaction)
  }
}

export const atLeastOnce = (
  options: { readonly cluster: Cluster } & Omit<ProducerOptions, "cluster" | "purpose">
): BindingCandidate => ({
  name: "at-least-once",
  guarantee: "at-least-once",
  support: Effect.succeed({ supported: true }),
  make: (lane) => Effect.map(makeProducer({ ...options, purpose: `produce-${lane.name}` }), atLeastOnceBinding)
})
