/** Settings of topics, brokers and groups, read and changed; the cluster described. */
import { describeCluster } from "../../wire/messages/describeCluster.ts"
import { describeConfigs } from "../../wire/messages/describeConfigs.ts"
import { incrementalAlterConfigs } from "../../wire/messages/incrementalAlterConfigs.ts"
import { code } from "../model/codes.ts"
import { kindOf, type ResourceKind, rulesOf, settingsOf } from "../model/settings.ts"
import { type ClusterState, controllerId, runningBrokers } from "../model/state.ts"
import { handler } from "./handler.ts"

/** Where a value comes from: set on a topic 1, on all brokers 3, on a group 8, nowhere 5. */
const SET_ON = { topic: 1, broker: 3, group: 8 } as const
const DEFAULT = 5

const resourceError = (
  state: ClusterState,
  kind: ResourceKind | null,
  name: string
): { readonly errorCode: number; readonly errorMessage: string } | null => {
  if (kind === null) {
    return { errorCode: code.INVALID_REQUEST, errorMessage: "Settings of this kind are not known here" }
  }
  if (kind === "topic" && !state.topics.has(name)) {
    return { errorCode: code.UNKNOWN_TOPIC_OR_PARTITION, errorMessage: `The topic '${name}' does not exist.` }
  }
  if (kind === "broker" && name !== "" && !state.brokers.has(Number(name))) {
    return { errorCode: code.INVALID_REQUEST, errorMessage: `There is no broker ${name}` }
  }
  return null
}

const describe = (state: ClusterState, kind: ResourceKind, name: string, wanted: ReadonlyArray<string> | null) => {
  const set = settingsOf(state, kind, name)
  return Object.entries(rulesOf(kind)).filter(([key]) => wanted === null || wanted.length === 0 || wanted.includes(key))
    .map(([key, { defaultValue }]) => ({
      name: key,
      value: set.get(key) ?? defaultValue,
      readOnly: false,
      configSource: set.has(key) ? SET_ON[kind] : DEFAULT,
      isSensitive: false,
      synonyms: [],
      configType: 0,
      documentation: null
    }))
}

export const describeConfigsHandler = handler(describeConfigs, ({ request, state }) => ({
  results: request.resources.map(({ configurationKeys, resourceName, resourceType }) => {
    const kind = kindOf(resourceType)
    const error = resourceError(state, kind, resourceName)
    if (error !== null || kind === null) {
      return { resourceType, resourceName, configs: [], errorCode: 0, errorMessage: null, ...error }
    }
    return {
      resourceType,
      resourceName,
      errorCode: code.NONE,
      errorMessage: null,
      configs: describe(state, kind, resourceName, configurationKeys)
    }
  })
}))

interface Change {
  readonly name: string
  readonly configOperation: number
  readonly value: string | null
}

/** Set 0, delete 1, append 2, subtract 3; undefined: back to the default. */
const changed = (before: string, { configOperation, value }: Change): string | undefined => {
  const list = before === "" ? [] : before.split(",")
  const given = (value ?? "").split(",")
  switch (configOperation) {
    case 0:
      return value ?? undefined
    case 2:
      return [...new Set([...list, ...given])].join(",")
    case 3:
      return list.filter((entry) => !given.includes(entry)).join(",")
    default:
      return undefined
  }
}

const alter = (
  state: ClusterState,
  kind: ResourceKind,
  name: string,
  changes: ReadonlyArray<Change>,
  validateOnly: boolean
) => {
  const wrong = (errorMessage: string) => ({ errorCode: code.INVALID_CONFIG, errorMessage })
  const next = new Map(settingsOf(state, kind, name))
  for (const change of changes) {
    const rule = rulesOf(kind)[change.name]
    if (rule === undefined && kind !== "broker") return wrong(`Unknown ${kind} config name: ${change.name}`)
    const value = changed(next.get(change.name) ?? rule?.defaultValue ?? "", change)
    const problem = value === undefined ? null : rule?.check(value) ?? null
    if (problem !== null) return wrong(`Invalid value ${value} for configuration ${change.name}: ${problem}`)
    if (value === undefined) next.delete(change.name)
    else next.set(change.name, value)
  }
  if (!validateOnly) {
    const set = settingsOf(state, kind, name)
    set.clear()
    for (const [key, value] of next) set.set(key, value)
  }
  return { errorCode: code.NONE, errorMessage: null }
}

export const incrementalAlterConfigsHandler = handler(incrementalAlterConfigs, ({ request, state }) => ({
  responses: request.resources.map(({ configs, resourceName, resourceType }) => {
    const kind = kindOf(resourceType)
    const error = resourceError(state, kind, resourceName)
    if (error !== null || kind === null) {
      return { resourceType, resourceName, errorCode: 0, errorMessage: null, ...error }
    }
    return { resourceType, resourceName, ...alter(state, kind, resourceName, configs, request.validateOnly) }
  })
}))

export const describeClusterHandler = handler(describeCluster, ({ state }) => ({
  errorCode: code.NONE,
  clusterId: state.clusterId,
  controllerId: controllerId(state),
  brokers: runningBrokers(state).map(({ host, id, port, rack }) => ({ brokerId: id, host, port, rack }))
}))
