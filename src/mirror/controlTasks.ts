/** The control tasks of a flow, as its settings want them: what the leading process of it does beside mirroring. */
import { Effect } from "effect"
import { adminSettings, targetSettings } from "../config/clients.ts"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { FlowMetrics } from "../metrics/flowMetrics.ts"
import { principalOf } from "../wire/principal.ts"
import { syncAcls } from "./control/aclSync.ts"
import type { ControlLog } from "./control/controlLog.ts"
import { makeDeletions } from "./control/deletions.ts"
import type { Leadership } from "./control/leader.ts"
import { syncSettings } from "./control/settingsSync.ts"
import { type ControlTask, runTasks } from "./control/tasks.ts"
import type { FlowClusters } from "./flowSetup.ts"
import type { FlowTopics } from "./flowTopics.ts"
import type { Naming } from "./naming.ts"
import type { Log } from "./report.ts"
import type { FlowState } from "./state.ts"

export interface ControlParts {
  readonly config: ResolvedConfig
  readonly flow: ResolvedFlow
  readonly clusters: FlowClusters
  readonly naming: Naming
  readonly notes: ControlLog
  readonly topics: FlowTopics
  readonly leadership: Leadership
  readonly state: FlowState
  readonly metrics: FlowMetrics
  readonly log: Log
}

/** Who writes on the target: whom no DENY may lock out. */
export const targetPrincipal = (config: ResolvedConfig, flow: ResolvedFlow): string | null =>
  principalOf(targetSettings(config, flow)) ?? principalOf(adminSettings(config, flow, "target"))

const tasksOf = (parts: ControlParts): ReadonlyArray<ControlTask> => {
  const { clusters, config, flow, log, naming, notes, topics } = parts
  const { control } = flow
  const onChange = (sentence: string): void => log("info", sentence)
  const list = () => topics.list
  const tasks: Array<ControlTask> = []
  if (control.syncSettings) {
    tasks.push({
      name: "settings",
      intervalMs: control.syncSettingsIntervalMs,
      pass: syncSettings({ ...clusters, topics: list, rules: topics.rules, onChange })
    })
  }
  if (control.syncAcls) {
    tasks.push({
      name: "acls",
      intervalMs: control.syncAclsIntervalMs,
      pass: syncAcls({
        ...clusters,
        naming,
        topics: list,
        notes,
        principal: targetPrincipal(config, flow),
        strict: control.aclsStrict,
        dryRun: control.aclsDryRun,
        onChange
      })
    })
  }
  if (control.syncTopicDeletes) {
    tasks.push({
      name: "deletes",
      intervalMs: flow.refreshTopicsIntervalMs,
      pass: makeDeletions({
        ...clusters,
        naming,
        notes,
        topics: list,
        onDeleted: (target, sentence) => {
          topics.places.forget(target)
          log("warn", sentence)
        }
      })
    })
  }
  return tasks
}

/** Runs for as long as the flow. */
export const runControlTasks = (parts: ControlParts): Effect.Effect<never> => {
  const { leadership, log, metrics, state, topics } = parts
  const tasks = tasksOf(parts)
  if (tasks.length === 0) return Effect.never
  return leadership.whileLeading(runTasks(tasks, {
    state,
    log,
    changed: topics.changed,
    onPass: (task, { changed, problems }) => metrics.controlPass(task, changed, problems.length)
  }))
}
