/**
 * The topics of a flow while it runs: kept up to date with both sides, and asked for the place of each delivery.
 *
 * Guarantee: a record has a place only by the id of the topic it was read from; one of a topic that nobody has looked
 * at yet, or that is paused, has none, and waits.
 */
import { Clock, Effect } from "effect"
import type { ResolvedFlow } from "../config/types.ts"
import { Signal } from "../txn/ledger/signal.ts"
import type { WireError } from "../wire/errors.ts"
import { ZERO_UUID } from "../wire/schema.ts"
import { type ControlLog } from "./control/controlLog.ts"
import { identitiesOf } from "./control/identities.ts"
import type { MirroredTopic, TopicProblem } from "./control/topics.ts"
import { creationSettings, topicPass, type TopicsFound } from "./control/topicPass.ts"
import { settingRules, type SettingRules } from "./control/settings.ts"
import type { FlowClusters } from "./flowSetup.ts"
import type { Naming } from "./naming.ts"
import { makePlaces, type Places } from "./places.ts"
import type { Log } from "./report.ts"
import type { FlowState } from "./state.ts"
import { replacedSentence, TargetIds } from "./targetIds.ts"

export interface FlowTopicsOptions {
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly naming: Naming
  readonly notes: ControlLog
  readonly leads: () => boolean
  readonly state: FlowState
  readonly log: Log
  /** A topic is not what it was: what was counted under its name is of no use any more. */
  readonly onForget: (topic: MirroredTopic) => void
}

/** Where a record's topic goes, or why nowhere now. */
export type TopicPlace = { readonly ok: true; readonly target: string } | {
  readonly ok: false
  readonly reason: string
}

const same = (topic: MirroredTopic, before: MirroredTopic | undefined): boolean =>
  before !== undefined && before.sourceId === topic.sourceId && before.target === topic.target

const CONTROL_TASK = "topics"
/** As it is called in /status. */
const TARGETS_TASK = "targets"

export class FlowTopics {
  readonly #options: FlowTopicsOptions
  readonly places: Places
  readonly rules: SettingRules
  /** Mirrored now. */
  list: ReadonlyArray<MirroredTopic> = []
  /** Names of all topics of the source at the last look. */
  onSource: ReadonlySet<string> = new Set()
  /** The list, or what is on the source, has changed. */
  readonly changed = new Signal()
  /** Also those whose place could not be made. */
  #all: ReadonlyArray<MirroredTopic> = []
  #found: TopicsFound | null = null
  /** Problems that were said already: said once, and again when they change. */
  readonly #said = new Map<string, string>()
  readonly #targetIds = new TargetIds()
  /** Target topics that are not what they were, and what is said of each. */
  readonly #replaced = new Map<string, string>()

  constructor(options: FlowTopicsOptions) {
    const { clusters, flow } = options
    this.#options = options
    this.rules = settingRules(flow.control)
    const settings = creationSettings(
      clusters.source,
      this.rules,
      (target) => this.sourceOf(target),
      (...refusal) => this.#refusedSetting(...refusal)
    )
    this.places = makePlaces(clusters.targetAdmin, flow.replicationFactor, settings)
    this.#pass = Effect.suspend(() =>
      topicPass({
        ...clusters,
        naming: options.naming,
        replicationFactor: flow.replicationFactor,
        control: flow.control,
        notes: options.notes,
        leads: options.leads,
        creation: settings,
        onPlaces: (topics) => {
          this.#all = topics
        }
      })
    )
  }

  readonly #pass: Effect.Effect<TopicsFound, WireError>

  #refusedSetting(topic: string, setting: string, reason: string): void {
    const { log } = this.#options
    this.#say(
      `setting ${topic} ${setting}`,
      () =>
        log(
          "warn",
          setting === ""
            ? `topic ${topic} is created with the target's settings: those of its source cannot be read: ${reason}`
            : `topic ${topic} is created without ${setting}, which the target does not take: ${reason}`
        ),
      reason
    )
  }

  #say(what: string, tell: () => void, reason: string): void {
    if (this.#said.get(what) === reason) return
    this.#said.set(what, reason)
    tell()
  }

  get names(): ReadonlyArray<string> {
    return this.list.map((topic) => topic.source)
  }

  /** Those that match and are not mirrored now, with the reason; not those that are left out on purpose (loops). */
  get unplaced(): ReadonlyArray<TopicProblem> {
    return this.#found === null ? [] : [...this.#found.problems, ...this.#found.paused]
  }

  find(source: string): MirroredTopic | undefined {
    return this.list.find((topic) => topic.source === source)
  }

  sourceOf(target: string): string | undefined {
    return this.#all.find((topic) => topic.target === target)?.source
  }

  /** The target's name of a topic, for people and metrics. */
  targetOf(source: string): string {
    return (this.find(source) ?? this.#all.find((topic) => topic.source === source))?.target ?? source
  }

  /** Where the records of a topic of the source go, by its id. */
  placeOf(source: string, id: string): TopicPlace {
    const now = this.#all.find((topic) => topic.source === source)
    if (now !== undefined && (id === now.sourceId || id === "" || id === ZERO_UUID || now.sourceId === ZERO_UUID)) {
      return { ok: true, target: now.target }
    }
    // What was read of a topic before it was deleted goes where it always went.
    const suffix = identitiesOf(this.#options.notes.known()).get(source)?.get(id)
    if (suffix !== undefined) return { ok: true, target: this.#options.naming.targetName(source) + suffix }
    const paused = this.#found?.paused.find(({ topic }) => topic === source)
    return {
      ok: false,
      reason: paused?.reason ?? `topic ${source} was created on the source since the last look at its topics`
    }
  }

  /** One look, and what it changes; true when another set of topics is to be read. */
  get refresh(): Effect.Effect<boolean, WireError> {
    return Effect.map(Effect.tap(this.#pass, (found) => this.#lookAtTargets(found)), (found) => {
      const before = new Map(this.list.map((topic) => [topic.source, topic]))
      for (const topic of found.topics) this.places.learn(topic.target, topic.partitions)
      this.#tell(found, before)
      this.#found = found
      this.list = found.topics
      this.onSource = found.onSource
      if (found.topics.length !== before.size || found.topics.some((topic) => !same(topic, before.get(topic.source)))) {
        this.changed.notify()
      }
      return before.size !== found.topics.length || found.topics.some((topic) => !before.has(topic.source))
    })
  }

  /** A gap on the target: said, and seen in the state for as long as this process runs. */
  #lookAtTargets({ topics }: TopicsFound): Effect.Effect<void, WireError> {
    const { clusters: { target }, log, notes, state } = this.#options
    const sources = new Map(topics.map((topic) => [topic.target, topic.source]))
    return Effect.gen({ self: this }, function*() {
      const there = yield* target.retrying(target.topics([...sources.keys()]))
      const { entries, replaced } = this.#targetIds.look(topics, there, notes.known())
      yield* notes.write(entries)
      for (const name of replaced) {
        const words = replacedSentence(name, sources.get(name) ?? "")
        log("error", words)
        this.#replaced.set(name, words)
        state.task(TARGETS_TASK, {
          state: "problem",
          reasons: [...this.#replaced.values()],
          atMs: yield* Clock.currentTimeMillis
        })
      }
    })
  }

  #tell(found: TopicsFound, before: ReadonlyMap<string, MirroredTopic>): void {
    const { log, onForget, state } = this.#options
    for (const { reason } of found.recreated) log("warn", reason)
    for (const { reason, topic } of found.paused) this.#say(topic, () => log("warn", reason), reason)
    for (const { reason, topic } of [...found.problems, ...found.leftOut]) {
      this.#say(topic, () => log("warn", `topic ${topic} is not mirrored: ${reason}`), reason)
    }
    for (const topic of found.topics) {
      const was = before.get(topic.source)
      if (was === undefined) {
        log("info", `topic ${topic.source} is mirrored to ${topic.target} (${topic.partitions} partitions)`)
      } else if (was.sourceId !== topic.sourceId) onForget(was)
      else if (was.partitions < topic.partitions) {
        log("info", `topic ${topic.source} has grown from ${was.partitions} to ${topic.partitions} partitions`)
      }
      this.#said.delete(topic.source)
    }
    const now = new Set(found.topics.map((topic) => topic.source))
    for (const [name, topic] of before) {
      if (now.has(name)) continue
      onForget(topic)
      if (!found.onSource.has(name)) {
        log("warn", `topic ${name} is gone from the source; ${topic.target} stays as it is, but for sync.topic.deletes`)
      }
    }
    const stands = [...found.problems, ...found.paused]
    state.stall(
      CONTROL_TASK,
      stands.length === 0
        ? null
        : `${stands.length} topics cannot be mirrored: ${stands[0]?.topic}: ${stands[0]?.reason}`
    )
  }
}
