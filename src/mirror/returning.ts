/**
 * Whether records that a flow sends may come back to it through the other flows of the same file, under whatever name:
 * topics that are mapped to each other (`a` to `b` there, `b` to `a` back), or kept names one way and prefixes the other.
 * By name such a loop is not seen where it is closed, so its records are marked (provenance.ts).
 *
 * Gotchas: flows of another file are not known here, and neither is what a transform makes of a topic's name. A flow that
 * is switched off counts: another process may run it.
 */
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import { namingOf } from "./flowSetup.ts"
import type { Naming } from "./naming.ts"

interface Step {
  readonly source: string
  readonly target: string
  readonly naming: Naming
}

/** More flows than anybody chains; names that grow for ever end here. */
const MAX_HOPS = 16

const stepOf = (config: ResolvedConfig, flow: ResolvedFlow): Step => ({
  source: flow.source,
  target: flow.target,
  // By alias: whether two of them are one cluster is not known before they are asked.
  naming: namingOf(config, flow, { sourceId: flow.source, targetId: flow.target })
})

/** The name that a flow gives a topic; null where it does not mirror it. */
const nameAfter = ({ naming }: Step, topic: string): string | null => {
  const verdict = naming.verdict(topic)
  return verdict.mirrored ? verdict.target : null
}

/** Whether `topic` of a flow's source, sent by it, comes to that cluster again under a name that the flow sends on. */
export const makeReturning = (config: ResolvedConfig, flow: ResolvedFlow): (topic: string) => boolean => {
  const own = stepOf(config, flow)
  const steps = config.flows.map((other) => stepOf(config, other))
  return (topic) => {
    const first = nameAfter(own, topic)
    if (first === null) return false
    const seen = new Set<string>()
    let open = [{ cluster: own.target, topic: first }]
    for (let hop = 0; hop < MAX_HOPS && open.length > 0; hop++) {
      const next: typeof open = []
      for (const at of open) {
        const key = JSON.stringify([at.cluster, at.topic])
        if (seen.has(key)) continue
        seen.add(key)
        for (const step of steps) {
          const name = step.source === at.cluster ? nameAfter(step, at.topic) : null
          if (name === null) continue
          if (step.target === own.source && nameAfter(own, name) !== null) return true
          next.push({ cluster: step.target, topic: name })
        }
      }
      open = next
    }
    return false
  }
}

const made = new WeakMap<ResolvedFlow, (topic: string) => boolean>()

const remembering = (ask: (topic: string) => boolean): (topic: string) => boolean => {
  const answers = new Map<string, boolean>()
  return (topic) => {
    const answer = answers.get(topic) ?? ask(topic)
    answers.set(topic, answer)
    return answer
  }
}

/** The same; what is found of a flow is kept as long as its configuration. */
export const returns = (config: ResolvedConfig, flow: ResolvedFlow, topic: string): boolean => {
  const known = made.get(flow) ?? remembering(makeReturning(config, flow))
  made.set(flow, known)
  return known(topic)
}
