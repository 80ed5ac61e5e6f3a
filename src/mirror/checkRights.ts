/**
 * Every right that a flow needs with the settings it has, by feature, and which of them its principals lack. The table
 * in docs/security.md says the same; test/integration/leastRights.test.ts holds both to it. Changes nothing.
 *
 * What keeps the whole flow or a topic from running (READ of the flow's group, of a topic; WRITE, CREATE of a target
 * topic) is told where that is looked at: check.ts.
 */
import { Effect } from "effect"
import { adminSettings, sourceSettings, targetSettings } from "../config/clients.ts"
import { ledgerTopicName } from "../txn/ledger/ledgerTopic.ts"
import { transactionalIdOf } from "../txn/ledger/lastRuns.ts"
import type { WireError } from "../wire/errors.ts"
import { principalWords } from "../wire/principal.ts"
import type { CheckControlParts } from "./checkControl.ts"
import { controlTopicName } from "./control/controlLog.ts"
import { groupFilter, type SourceGroup, sourceGroups } from "./control/groupSync.ts"
import { leaderGroupId } from "./control/leader.ts"
import {
  type Asked,
  type MissingRight,
  missingOnCluster,
  missingOnGroups,
  missingOnTopics,
  missingOnTransactions,
  missingToCreate,
  type Need
} from "./control/missingRights.ts"
import { checkpointsTopic, offsetSyncsTopic } from "./control/mm2Formats.ts"
import { HEARTBEATS } from "./naming.ts"
import { offsetsTopicName } from "./offsets/offsetsTopic.ts"
import { ownGroups } from "./ownGroups.ts"

type Missing = Effect.Effect<ReadonlyArray<MissingRight>, WireError>

interface Whom {
  readonly source: Asked
  /** Reads and writes on the target. */
  readonly writer: Asked
  /** Creates and changes there. */
  readonly admin: Asked
}

/** A pattern that is a name, or reads like one. */
const NAME = /^[A-Za-z0-9._-]+$/

const need = (when: boolean, feature: string, ...operations: ReadonlyArray<string>): ReadonlyArray<Need> =>
  when ? operations.map((operation) => ({ feature, operation })) : []

const together = (parts: ReadonlyArray<Missing>): Missing =>
  Effect.map(Effect.forEach(parts, (part) => part), (found) => found.flat())

const mirroredTopics = ({ exists, flow, topics }: CheckControlParts, { admin, source, writer }: Whom): Missing => {
  const { control, offsets } = flow
  const there = topics.map((topic) => topic.target).filter(exists)
  const settings = "settings are not copied (sync.topic.configs.enabled)"
  return together([
    // A topic that may not be seen is told where the configuration names it.
    missingOnTopics(source, [...topics.map((topic) => topic.source), ...flow.topics.filter((one) => NAME.test(one))], [
      ...need(true, "it is not mirrored", "READ"),
      ...need(true, "new target topics get the target's settings", "DESCRIBE_CONFIGS")
    ]),
    missingOnTopics(writer, there, [
      ...need(true, "nothing is written", "WRITE"),
      ...need(
        offsets.map && offsets.syncGroups,
        "offsets of groups are not written (sync.group.offsets.enabled)",
        "READ"
      )
    ]),
    missingOnTopics(admin, there, [
      ...need(true, "it cannot grow with its source", "ALTER"),
      ...need(control.syncSettings, settings, "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
      ...need(control.syncTopicDeletes, "it is not deleted with its source (sync.topic.deletes)", "DELETE")
    ])
  ])
}

interface OwnTopic {
  readonly whom: Asked
  readonly maker: Asked
  readonly topic: string
  readonly feature: string
  readonly used: ReadonlyArray<string>
  /** By the maker. */
  readonly set?: ReadonlyArray<string>
}

/** Topics that onceover writes beside the mirrored ones. */
const ownTopics = ({ flow, guarantee }: CheckControlParts, { admin, source, writer }: Whom): Missing => {
  const { offsets } = flow
  const own: Array<OwnTopic> = [{
    whom: writer,
    maker: admin,
    topic: controlTopicName(flow.name),
    feature: "which topics were created again is forgotten when the process ends",
    used: ["READ", "WRITE"]
  }]
  if (flow.deliveryGuarantee === "exactly-once" && flow.exactlyOnceBindings.includes("ledger")) {
    own.push({
      whom: writer,
      maker: admin,
      topic: ledgerTopicName(flow.name),
      feature: "there is no exactly-once without the ledger",
      used: ["READ", "WRITE"],
      set: ["DESCRIBE_CONFIGS", "ALTER_CONFIGS"]
    }, {
      whom: writer,
      maker: admin,
      topic: ledgerTopicName(flow.name),
      feature: "the ledger grows without bound",
      used: ["DELETE"]
    })
  }
  if (offsets.map && guarantee !== null) {
    const topic = offsetsTopicName(flow.name)
    own.push(
      {
        whom: writer,
        maker: admin,
        topic,
        feature: "there is no map of offsets (offset.map.enabled)",
        used: ["READ", "WRITE"]
      },
      { whom: writer, maker: admin, topic, feature: "the map of offsets grows without bound", used: ["DELETE"] }
    )
  }
  if (flow.deadLetter !== null) {
    own.push({
      whom: writer,
      maker: admin,
      topic: flow.deadLetter.topic,
      feature: "what cannot be mirrored has no place to go (errors.deadletterqueue.topic.name)",
      used: ["WRITE"]
    })
  }
  const emitted = (topic: string, setting: string, at: "source" | "target"): void => {
    own.push({
      whom: at === "source" ? source : writer,
      maker: at === "source" ? source : admin,
      topic,
      feature: `it is not written (${setting})`,
      used: ["WRITE"]
    })
  }
  if (offsets.heartbeats) {
    for (const at of ["target", "source"] as const) {
      if (offsets.heartbeatsAt === at || offsets.heartbeatsAt === "both") {
        emitted(HEARTBEATS, "emit.heartbeats.enabled", at)
      }
    }
  }
  if (offsets.map && offsets.checkpoints) {
    emitted(checkpointsTopic(flow.source, offsets.internalSeparator), "emit.checkpoints.enabled", "target")
  }
  if (offsets.map && offsets.offsetSyncs) {
    const other = offsets.offsetSyncsAt === "source" ? flow.target : flow.source
    emitted(
      offsetSyncsTopic(other, offsets.internalSeparator),
      "emit.offset-syncs.enabled",
      offsets.offsetSyncsAt
    )
  }
  return together(own.flatMap(({ feature, maker, set = [], topic, used, whom }) => [
    missingOnTopics(whom, [topic], need(true, feature, ...used)),
    missingOnTopics(maker, [topic], need(set.length > 0, feature, ...set)),
    // Once a topic, though two features use it.
    used.includes("WRITE") ? missingToCreate(maker, topic, feature) : Effect.succeed([])
  ]))
}

/** As many as are looked at: each is a question of its own. */
const MOST_GROUPS = 50

const groups = ({ clusters, config, flow, notes }: CheckControlParts, { source, writer }: Whom): Missing =>
  Effect.gen(function*() {
    const { offsets } = flow
    const own = leaderGroupId(flow.name)
    const found = [
      ...(yield* missingOnGroups(
        writer,
        [own],
        need(true, "each process does the control tasks, as they cannot agree on one", "READ")
      )),
      ...(yield* missingOnGroups(
        source,
        [flow.groupId],
        need(
          flow.groupProtocol.value === "share",
          "the share group's settings cannot be brought to what a mirror needs",
          "DESCRIBE_CONFIGS",
          "ALTER_CONFIGS"
        )
      ))
    ]
    if (!offsets.map || !(offsets.syncGroups || offsets.checkpoints)) return found
    const mine = ownGroups(config, flow, notes.known())
    const matches = groupFilter(offsets.groups, offsets.groupsExclude, () => mine)
    const seen: ReadonlyArray<SourceGroup> = yield* sourceGroups({ source: clusters.source, matches })
    const named = offsets.groups.filter((pattern) => NAME.test(pattern) && matches(pattern))
    const ids = [...new Set([...named, ...seen.map(({ id }) => id)])].slice(0, MOST_GROUPS)
    const unread = "offsets of groups are not known"
    const unseen = seen.length === 0 && named.length === 0
      ? yield* missingOnCluster(
        source,
        need(true, `${unread}: no group is seen, and none may be named here`, "DESCRIBE")
      )
      : []
    return [
      ...found,
      ...unseen,
      ...(yield* missingOnGroups(source, ids, need(true, unread, "DESCRIBE"))),
      ...(yield* missingOnGroups(
        writer,
        ids,
        need(offsets.syncGroups, "its offsets are not written (sync.group.offsets.enabled)", "READ")
      ))
    ]
  })

/** What is missing, by feature, principal and resource. */
export const missingRights = (parts: CheckControlParts): Missing => {
  const { clusters, config, flow, guarantee } = parts
  const whom: Whom = {
    source: { cluster: clusters.source, principal: principalWords(sourceSettings(config, flow)) },
    writer: { cluster: clusters.target, principal: principalWords(targetSettings(config, flow)) },
    admin: {
      cluster: clusters.targetAdmin,
      principal: principalWords(adminSettings(config, flow, "target"))
    }
  }
  const acls = "rights are not copied (sync.topic.acls.enabled)"
  const transactions = guarantee === "exactly-once"
    // An id that no lane has: those end in a number and an instance.
    ? missingOnTransactions(
      whom.writer,
      transactionalIdOf("check", flow.name),
      "onceover.*",
      "nothing is written exactly once"
    )
    : Effect.succeed([])
  return together([
    mirroredTopics(parts, whom),
    ownTopics(parts, whom),
    groups(parts, whom),
    transactions,
    missingOnCluster(whom.source, need(flow.control.syncAcls, acls, "DESCRIBE")),
    missingOnCluster(whom.admin, need(flow.control.syncAcls, acls, "DESCRIBE", "ALTER"))
  ])
}
