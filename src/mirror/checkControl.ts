/**
 * What `check` says of a flow's control tasks: the rights they lack, by name, and what they would change on the target
 * now (the dry run of settings and rights). Changes nothing.
 */
import { Effect } from "effect"
import { adminSettings, sourceSettings, targetSettings } from "../config/clients.ts"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { WireError } from "../wire/errors.ts"
import { principalWords } from "../wire/principal.ts"
import { aclSentence } from "./control/acls.ts"
import { aclPlanNow } from "./control/aclSync.ts"
import { type ControlLog, controlTopicName } from "./control/controlLog.ts"
import { type Asked, type MissingRight, missingOnCluster, missingOnTopics, type Need } from "./control/missingRights.ts"
import { changeSentence, settingRules } from "./control/settings.ts"
import { differingSettings } from "./control/settingsSync.ts"
import type { MirroredTopic } from "./control/topics.ts"
import { targetPrincipal } from "./controlTasks.ts"
import type { FlowClusters } from "./flowSetup.ts"
import type { Naming } from "./naming.ts"

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
  /** Whether the target has it. */
  readonly exists: (target: string) => boolean
}

const need = (when: boolean, feature: string, ...operations: ReadonlyArray<string>): ReadonlyArray<Need> =>
  when ? operations.map((operation) => ({ feature, operation })) : []

const missing = (parts: CheckControlParts): Effect.Effect<ReadonlyArray<MissingRight>, WireError> =>
  Effect.gen(function*() {
    const { clusters, config, exists, flow, topics } = parts
    const { control } = flow
    const source: Asked = { cluster: clusters.source, principal: principalWords(sourceSettings(config, flow)) }
    const admin: Asked = {
      cluster: clusters.targetAdmin,
      principal: principalWords(adminSettings(config, flow, "target"))
    }
    const writer: Asked = { cluster: clusters.target, principal: principalWords(targetSettings(config, flow)) }
    const settings = "settings are not copied (sync.topic.configs.enabled)"
    const acls = "rights are not copied (sync.topic.acls.enabled)"
    const notes = "which topics were created again is forgotten when the process ends"
    return [
      ...(yield* missingOnTopics(source, topics.map((topic) => topic.source), [
        ...need(true, "it is not mirrored", "READ"),
        ...need(true, "new target topics get the target's settings", "DESCRIBE_CONFIGS")
      ])),
      ...(yield* missingOnTopics(writer, topics.map((topic) => topic.target).filter(exists), [
        ...need(true, "nothing is written", "WRITE")
      ])),
      ...(yield* missingOnTopics(admin, topics.map((topic) => topic.target).filter(exists), [
        ...need(true, "it cannot grow with its source", "ALTER"),
        ...need(control.syncSettings, settings, "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
        ...need(control.syncTopicDeletes, "it is not deleted with its source (sync.topic.deletes)", "DELETE")
      ])),
      ...(yield* missingOnTopics(writer, [controlTopicName(flow.name)], need(true, notes, "READ", "WRITE"))),
      ...(yield* missingOnCluster(source, need(control.syncAcls, acls, "DESCRIBE"))),
      ...(yield* missingOnCluster(admin, need(control.syncAcls, acls, "DESCRIBE", "ALTER")))
    ]
  })

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

export const checkControl = (parts: CheckControlParts): Effect.Effect<CheckedControl, WireError> =>
  Effect.gen(function*() {
    const rights = yield* missing(parts)
    const settings = yield* settingChangesNow(parts)
    const acls = yield* aclChangesNow(parts)
    return {
      rights,
      changes: [...settings.changes, ...acls.changes],
      // What a missing right is the reason of is told by the right's name.
      problems: [
        ...(rights.some(({ operation }) => operation === "DESCRIBE_CONFIGS") ? [] : settings.problems),
        ...acls.problems
      ]
    }
  })
