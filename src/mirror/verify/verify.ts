/**
 * `onceover verify`: whether the target holds what the source holds, by content. Reads both sides as consumers would and
 * writes nothing anywhere. Never fails: what could not be compared is in the report.
 */
import { Effect, type Scope } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../../config/types.ts"
import { selectTopics, settleDoubts } from "../control/topics.ts"
import { connectFlow, namingOf } from "../flowSetup.ts"
import { buildChain } from "../transforms/build.ts"
import { compareUnit } from "./compare.ts"
import type { VerifyOptions, VerifyProgress } from "./options.ts"
import { plan } from "./plan.ts"
import type { Sides, Unit } from "./places.ts"
import type { VerifiedFlow, VerifiedPartition, VerifyReport } from "./report.ts"

/** Partitions that are read at once. */
const AT_ONCE = 4
const FETCH_BYTES = 8 * 1024 * 1024

/** Counts what has been passed and tells it on. */
class Passed {
  #done = 0
  #total = 0
  #waiting: string | null = null
  readonly #tell: (progress: VerifyProgress) => void

  constructor(tell: (progress: VerifyProgress) => void) {
    this.#tell = tell
  }
  #now(): void {
    this.#tell({ done: this.#done, total: this.#total, waiting: this.#waiting })
  }
  passed(offsets: number): void {
    this.#done += offsets
    this.#now()
  }
  more(offsets: number): void {
    this.#total += offsets
    this.#now()
  }
  wait(what: string | null): void {
    this.#waiting = what
    this.#now()
  }
}

const unread = (unit: Unit, problem: string): ReadonlyArray<VerifiedPartition> =>
  unit.parts.map((part) => ({
    sourceTopics: [part.topic],
    targetTopic: part.targetTopic,
    partition: part.partition,
    source: { from: part.from, to: part.to, records: 0 },
    target: { from: 0, to: 0, records: 0 },
    equal: false,
    lost: 0,
    doubled: 0,
    altered: 0,
    foreign: 0,
    explained: { removedOnSource: 0, removedOnTarget: 0, notYetMirrored: 0, filtered: 0 },
    differences: [],
    notes: [],
    problem
  }))

const notesOf = (flow: ResolvedFlow, options: VerifyOptions, tail: number): ReadonlyArray<string> => [
  ...(tail > 0 ? [`the mirror stands still ${tail} offsets before the source's ends: those are left out`] : []),
  ...(flow.transforms.length > 0
    ? [
      `transforms (${
        flow.transforms.map(({ name }) => name).join(", ")
      }) were applied to the source's records before the comparison`
    ]
    : []),
  ...(flow.deadLetter === null ? [] : [`records may be in ${flow.deadLetter.topic} instead: those count as lost here`]),
  ...(options.sample === null ? [] : [`a sample: ${options.sample} partitions of each topic, chosen by chance`]),
  ...(flow.isolationLevel === "read_uncommitted"
    ? ["the source is read as the flow reads it: with aborted records"]
    : [])
]

const verifyFlow = (
  config: ResolvedConfig,
  flow: ResolvedFlow,
  options: VerifyOptions,
  passed: Passed
): Effect.Effect<VerifiedFlow, { readonly message: string }, Scope.Scope> =>
  Effect.gen(function*() {
    const clusters = yield* connectFlow(config, flow)
    const { source, target } = clusters
    const chain = yield* buildChain(flow.transforms)
    const all = yield* source.retrying(source.allTopics)
    const { topics } = yield* settleDoubts(target, selectTopics(all, namingOf(config, flow, clusters)))
    const wanted = topics.filter((topic) => options.topics === null || options.topics.test(topic.source))
    const head = { name: flow.name, source: flow.source, target: flow.target }
    if (wanted.length === 0) {
      return { ...head, equal: false, partitions: [], notes: [], problem: "no topic of the source matches" }
    }
    const planned = yield* plan({
      config,
      flow,
      clusters,
      topics: wanted,
      chain,
      options,
      onWait: (what) => passed.wait(what)
    })
    const reading = (cluster: typeof source, committed: boolean, end: string) => ({
      cluster,
      committed,
      purpose: `verify-${end}-${flow.name}`,
      maxBytes: FETCH_BYTES,
      onPassed: (offsets: number) => passed.passed(offsets)
    })
    const sides: Sides = {
      source: reading(source, flow.isolationLevel === "read_committed", "source"),
      target: reading(target, true, "target"),
      targetPart: planned.targetPart,
      sourceCompacted: planned.sourceCompacted,
      ordered: flow.groupProtocol.value === "consumer",
      fromBeginning: flow.autoOffsetReset === "earliest",
      endsEarly: options.to !== null,
      onMore: (offsets) => passed.more(offsets)
    }
    const partitions = yield* Effect.forEach(
      planned.units,
      (unit) =>
        compareUnit(sides, unit).pipe(
          Effect.catch((error) => Effect.succeed(unread(unit, error.message)))
        ),
      { concurrency: AT_ONCE }
    )
    const found = partitions.flat()
    return {
      ...head,
      equal: found.every(({ equal }) => equal),
      partitions: found,
      notes: notesOf(flow, options, planned.tail),
      problem: null
    }
  })

/** Compares the flows that are asked for. `onProgress` is called often: whoever shows it chooses when. */
export const verifyService = (
  config: ResolvedConfig,
  options: VerifyOptions,
  onProgress: (progress: VerifyProgress) => void
): Effect.Effect<VerifyReport> =>
  Effect.gen(function*() {
    const passed = new Passed(onProgress)
    const wanted = config.flows.filter((flow) => options.flow === null ? flow.enabled : flow.name === options.flow)
    const flows = yield* Effect.forEach(wanted, (flow) =>
      Effect.scoped(verifyFlow(config, flow, options, passed)).pipe(
        Effect.catch(({ message }) =>
          Effect.succeed<VerifiedFlow>({
            name: flow.name,
            source: flow.source,
            target: flow.target,
            equal: false,
            partitions: [],
            notes: [],
            problem: message
          })
        )
      ))
    return { equal: flows.length > 0 && flows.every(({ equal }) => equal), flows }
  })
