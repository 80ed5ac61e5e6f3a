/**
 * What `check` says of a flow's control tasks: the rights they lack, by name, and what they would change on the target
 * now (the dry run of settings and rights). Changes nothing.
 */
import { Effect } from "effect"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { WireError } from "../wire/errors.ts"
import { aclSentence } from "./control/acls.ts"
import { aclPlanNow } from "./control/aclSync.ts"
import { missingRights } from "./checkRights.ts"
import type { ControlLog } from "./control/controlLog.ts"
import type { MissingRight } from "./control/missingRights.ts"
import { changeSentence, settingRules } from "./control/settings.ts"
import { differingSettings } from "./control/settingsSync.ts"
import type { MirroredTopic } from "./control/topics.ts"
import { targetPrincipal } from "./controlTasks.ts"
import type { FlowClusters } from "./flowSetup.ts"
import type { Naming } from "./naming.ts"
import { returns } from "./returning.ts"
import { timestampWarnings } from "./timestampLimits.ts"

export interface CheckedControl {
  readonly rights: ReadonlyArray<MissingRight>
  /** What a run would change on the target, one sentence each. */
  readonly changes: ReadonlyArray<string>
  /** What could not be found out. */
  readonly problems: ReadonlyArray<string>
}

export interface CheckControlParts {
  readonly config: ResolvedConfig
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly naming: Naming
  readonly notes: ControlLog
  readonly topics: ReadonlyArray<MirroredTopic>
  /** What would be in force; null: nothing, the flow would not run. */
  readonly guarantee: "exactly-once" | "at-least-once" | null
  /** Whether the target has it. */
  readonly exists: (target: string) => boolean
}

const settingChangesNow = ({ clusters, exists, flow, topics }: CheckControlParts) =>
  Effect.gen(function*() {
    if (!flow.control.syncSettings) return { changes: [], problems: [] }
    const there = topics.filter((topic) => exists(topic.target))
    const found = yield* differingSettings({ ...clusters, topics: () => there, rules: settingRules(flow.control) })
    return {
      changes: found.wanted.flatMap(({ changes, topic }) => changes.map((change) => changeSentence(topic, change))),
      problems: found.problems
    }
  })

const aclChangesNow = ({ clusters, config, flow, naming, notes, topics }: CheckControlParts) =>
  Effect.gen(function*() {
    if (!flow.control.syncAcls) return { changes: [], problems: [] }
    const noted = yield* notes.read
    const principal = targetPrincipal(config, flow)
    const plan = yield* aclPlanNow({ ...clusters, naming, topics: () => topics, principal, noted })
    if (plan === null) return { changes: [], problems: [] }
    const removed = flow.control.aclsStrict ? plan.revoked : []
    return {
      changes: [
        ...plan.missing.map((acl) => `to copy: ${aclSentence(acl)}`),
        ...removed.map((acl) => `to remove, as the source revoked it: ${aclSentence(acl)}`),
        ...plan.notes
      ],
      problems: []
    }
  }).pipe(
    // The missing right is told by its name.
    Effect.catchTag("BrokerError", (error) =>
      Effect.succeed({ changes: [], problems: error.class === "authorization" ? [] : [error.message] }))
  )

/** Topics whose records would go round for ever. */
const goingRound = ({ config, flow, topics }: CheckControlParts): ReadonlyArray<string> =>
  flow.control.provenance
    ? []
    : topics.filter(({ source }) => returns(config, flow, source)).map(({ source, target }) =>
      `topic ${source} comes back to "${flow.source}" from ${target} by other flows of this file, and goes round for ever: provenance.header.enabled is false`
    )

export const checkControl = (parts: CheckControlParts): Effect.Effect<CheckedControl, WireError> =>
  Effect.gen(function*() {
    const rights = yield* missingRights(parts)
    const settings = yield* settingChangesNow(parts)
    const acls = yield* aclChangesNow(parts)
    const { clusters, exists, topics } = parts
    const timestamps = yield* timestampWarnings(
      { source: clusters.source, target: clusters.targetAdmin },
      topics.filter(({ target }) => exists(target))
    )
    return {
      rights,
      changes: [...settings.changes, ...acls.changes],
      // What a missing right is the reason of is told by the right's name.
      problems: [
        ...(rights.some(({ operation }) => operation === "DESCRIBE_CONFIGS") ? [] : settings.problems),
        ...acls.problems,
        ...goingRound(parts),
        ...timestamps
      ]
    }
  })
