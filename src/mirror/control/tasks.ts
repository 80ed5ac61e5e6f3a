/**
 * The control tasks of a flow that one process does for all: each is a pass that is made again at its interval, and
 * when the topics have changed. A pass that fails is said and made again; none stops the flow.
 */
import { Clock, Effect } from "effect"
import type { Signal } from "../../txn/ledger/signal.ts"
import type { Log } from "../report.ts"
import type { FlowState } from "../state.ts"

export interface TaskReport {
  /** Changes made on the target. */
  readonly changed: number
  /** What could not be done, one sentence each. */
  readonly problems: ReadonlyArray<string>
  /** What a person may want to know, and is as it should be. */
  readonly notes: ReadonlyArray<string>
}

export interface ControlTask {
  /** "settings", "acls", "deletes": as in /status and metrics. */
  readonly name: string
  readonly intervalMs: number
  readonly pass: Effect.Effect<TaskReport, { readonly message: string }>
}

export interface TaskPorts {
  readonly state: FlowState
  readonly log: Log
  /** Topics came, went or changed. */
  readonly changed: Signal
  readonly onPass: (task: string, report: TaskReport) => void
}

const nothing: TaskReport = { changed: 0, problems: [], notes: [] }

/** Between two passes for the topics' sake, milliseconds: many topics may change one after the other. */
const LEAST_MS = 500

const runTask = (task: ControlTask, { changed, log, onPass, state }: TaskPorts): Effect.Effect<never> =>
  Effect.gen(function*() {
    let said = new Set<string>()
    while (true) {
      const { next } = changed
      const report = yield* Effect.catch(
        task.pass,
        (error) => Effect.succeed<TaskReport>({ ...nothing, problems: [error.message] })
      )
      for (const problem of report.problems) if (!said.has(problem)) log("warn", problem)
      for (const note of report.notes) if (!said.has(note)) log("info", note)
      said = new Set([...report.problems, ...report.notes])
      state.task(task.name, {
        state: report.problems.length === 0 ? "ok" : "problem",
        reasons: [...report.problems, ...report.notes],
        atMs: yield* Clock.currentTimeMillis
      })
      onPass(task.name, report)
      yield* Effect.sleep(Math.min(LEAST_MS, task.intervalMs))
      yield* Effect.raceFirst(Effect.sleep(task.intervalMs), next)
    }
  })

/** Runs until it is interrupted: another process does the tasks from then on. */
export const runTasks = (tasks: ReadonlyArray<ControlTask>, ports: TaskPorts): Effect.Effect<never> =>
  Effect.forEach(tasks, (task) => runTask(task, ports), { concurrency: "unbounded", discard: true }).pipe(
    Effect.andThen(Effect.never),
    Effect.ensuring(Effect.sync(() => {
      for (const { name } of tasks) ports.state.task(name, { state: "elsewhere", reasons: [], atMs: null })
    }))
  )
