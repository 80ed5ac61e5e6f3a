/** Builds the chain of a flow from its configuration. */
import { Effect, Schema } from "effect"
import type { PredicateSpec, TransformSpec } from "../../config/types.ts"
import { builtinTypes, makeBuiltin, type ParameterProblem } from "./builtin.ts"
import { makeChain, type TransformChain } from "./chain.ts"
import { loadModuleTransform, type TransformModuleError } from "./module.ts"
import { makePredicate, onlyWhere, predicateTypes } from "./predicates.ts"
import type { Transform } from "./transform.ts"

/** A transform or predicate that cannot be built: which, what is wrong, what is allowed. */
export class TransformConfigError extends Schema.TaggedError<TransformConfigError>()("TransformConfigError", {
  /** "transforms.route" or "predicates.isOrder" */
  where: Schema.String,
  what: Schema.String
}) {
  override get message(): string {
    return `${this.where}: ${this.what}`
  }
}

const wrongParameter = (where: string, problem: ParameterProblem): TransformConfigError =>
  new TransformConfigError({
    where: `${where}.${problem.parameter}`,
    what: `${problem.value === null ? "is missing" : `is "${problem.value}"`}; allowed: ${problem.allowed}`
  })

const buildPredicate = Effect.fnUntraced(function*(spec: PredicateSpec) {
  const where = `predicates.${spec.name}`
  const made = makePredicate(spec.type, spec.params)
  if (made === null) {
    return yield* new TransformConfigError({
      where: `${where}.type`,
      what: `is "${spec.type}"; allowed: ${predicateTypes.join(", ")}`
    })
  }
  if (!made.ok) return yield* wrongParameter(where, made.problem)
  return made.value
})

const buildOne = Effect.fnUntraced(function*(spec: TransformSpec) {
  const where = `transforms.${spec.name}`
  let transform: Transform
  if (spec.type === "module") transform = yield* loadModuleTransform(spec.name, spec.params.get("path") ?? "")
  else {
    const made = makeBuiltin(spec.name, spec.type, spec.params)
    if (made === null) {
      return yield* new TransformConfigError({
        where: `${where}.type`,
        what: `is "${spec.type}"; allowed: ${builtinTypes.join(", ")}, module`
      })
    }
    if (!made.ok) return yield* wrongParameter(where, made.problem)
    transform = made.value
  }
  if (spec.predicate === null) return transform
  return onlyWhere(transform, yield* buildPredicate(spec.predicate), spec.negate)
})

/** The chain of a flow; null when it has no transforms, so that its batches pass through undecoded. */
export const buildChain = (
  specs: ReadonlyArray<TransformSpec>
): Effect.Effect<TransformChain | null, TransformConfigError | TransformModuleError> =>
  specs.length === 0 ? Effect.succeed(null) : Effect.map(Effect.forEach(specs, buildOne), makeChain)
