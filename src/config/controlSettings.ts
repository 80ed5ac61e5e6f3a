/**
 * The settings of a flow's control tasks: what becomes of topics that are deleted or created again on the source, of
 * their settings, of the rights on them, and of records that would go round in a circle.
 */
import type { Decoded } from "./decode.ts"
import { flag, patternLists, patterns, whole, withDefault, word } from "./setting.ts"

const DAY = 86_400

/**
 * MirrorMaker 2's list. The two of its names that begin with "log." are no topic settings, so MirrorMaker copies what
 * they stand for; here they are named as topics have them.
 */
const DEFAULT_SETTINGS_EXCLUDE = [
  "follower\\.replication\\.throttled\\.replicas",
  "leader\\.replication\\.throttled\\.replicas",
  "message\\.timestamp\\.difference\\.max\\.ms",
  "log\\.message\\.timestamp\\.before\\.max\\.ms",
  "log\\.message\\.timestamp\\.after\\.max\\.ms",
  "message\\.timestamp\\.before\\.max\\.ms",
  "message\\.timestamp\\.after\\.max\\.ms",
  "message\\.timestamp\\.type",
  "unclean\\.leader\\.election\\.enable",
  "min\\.insync\\.replicas"
]

export const controlSettings = {
  "on.topic.recreated": withDefault(
    word(
      ["restart", "pause", "new-topic"],
      "What happens when a topic of the source was deleted and created again under its name, also while nothing ran (told by its topic id, brokers from 2.8 on). `restart` mirrors the new one from its beginning into the same target topic, behind what is there; `pause` mirrors nothing of it until this is set otherwise or the target topic is deleted; `new-topic` mirrors it into a target topic of its own (`east.orders.2`). Never silent, and the progress of the old one is never taken for the new one's."
    ),
    "restart"
  ),
  "sync.topic.deletes": withDefault(
    flag(
      "Deletes a target topic when the source topic that this flow mirrored into it is deleted. Off, nothing is ever deleted on the target."
    ),
    false
  ),
  "sync.topic.configs.enabled": withDefault(
    flag(
      "Keeps the settings of target topics as on the source. Topics that the flow creates get the source's settings in any case."
    ),
    true
  ),
  "sync.topic.configs.interval.seconds": withDefault(
    whole(1, DAY, "How often settings are compared; only what differs is changed.", "seconds"),
    60
  ),
  "config.properties.exclude": withDefault(
    patterns(
      "Topic settings that are not copied: regular expressions that match the whole name. A list here replaces the default one, which is MirrorMaker 2's with the two timestamp limits that it misses."
    ),
    DEFAULT_SETTINGS_EXCLUDE
  ),
  "use.defaults.from": withDefault(
    word(
      ["target", "source"],
      "What a setting becomes that the source topic does not set itself: `target` leaves it to the target's default (and takes back what the target topic sets), `source` copies the value that is in force on the source."
    ),
    "target"
  ),
  "topic.settings.pinned": withDefault(
    patternLists(
      "patterns of target topic names to lists of setting names or patterns",
      "Settings of target topics that stay as they are on the target, whatever the source says: `\"east\\\\.orders\": [\"retention\\\\.ms\"]`. Both sides are regular expressions that match the whole name."
    ),
    {}
  ),
  "sync.topic.acls.enabled": withDefault(
    flag(
      "Copies rights on topics (ACLs) by MirrorMaker 2's rules: literal topic names only, ALLOW WRITE stays behind, ALLOW ALL becomes ALLOW READ. A right on `*` is copied to each mirrored topic, never as `*`; a DENY that would lock the mirror itself out is narrowed or left out, and named. Where either cluster has no authorizer nothing is done."
    ),
    true
  ),
  "sync.topic.acls.interval.seconds": withDefault(whole(1, DAY, "How often rights are compared.", "seconds"), 60),
  "sync.topic.acls.strict": withDefault(
    flag(
      "Also removes from the target what this flow has copied there and the source has revoked since. Rights that others gave on the target stay."
    ),
    false
  ),
  "sync.topic.acls.dry.run": withDefault(
    flag("Only says which rights would be added and removed, in the log and in /status."),
    false
  ),
  "provenance.header.enabled": withDefault(
    flag(
      "With replication.policy identity, for topics that topic.mapping maps to their own name, and for those whose records would come back by other flows of this file under another name: each record gets a header `onceover-provenance` with the ids of the clusters it came through, and a record that came through the target is not sent there again. So rings and active/active pairs stay still. The price: batches of these topics are decoded and encoded again instead of passed through. Switch it off only where nothing mirrors back."
    ),
    true
  )
}

/** What the control tasks go by. */
export interface ControlSettings {
  readonly onTopicRecreated: "restart" | "pause" | "new-topic"
  readonly syncTopicDeletes: boolean
  readonly syncSettings: boolean
  readonly syncSettingsIntervalMs: number
  /** Regular expressions, to be anchored by the reader. */
  readonly settingsExclude: ReadonlyArray<string>
  readonly useDefaultsFrom: "target" | "source"
  /** Patterns of target topics to patterns of setting names. */
  readonly settingsPinned: ReadonlyMap<string, ReadonlyArray<string>>
  readonly syncAcls: boolean
  readonly syncAclsIntervalMs: number
  readonly aclsStrict: boolean
  readonly aclsDryRun: boolean
  readonly provenance: boolean
}

const MILLIS = 1_000

export const controlOf = (
  v: Decoded<typeof controlSettings>,
  translated: (pattern: string) => string
): ControlSettings => ({
  onTopicRecreated: v["on.topic.recreated"],
  syncTopicDeletes: v["sync.topic.deletes"],
  syncSettings: v["sync.topic.configs.enabled"],
  syncSettingsIntervalMs: v["sync.topic.configs.interval.seconds"] * MILLIS,
  settingsExclude: v["config.properties.exclude"].map(translated),
  useDefaultsFrom: v["use.defaults.from"],
  settingsPinned: new Map(
    Object.entries(v["topic.settings.pinned"]).map(([topic, names]) => [translated(topic), names.map(translated)])
  ),
  syncAcls: v["sync.topic.acls.enabled"],
  syncAclsIntervalMs: v["sync.topic.acls.interval.seconds"] * MILLIS,
  aclsStrict: v["sync.topic.acls.strict"],
  aclsDryRun: v["sync.topic.acls.dry.run"],
  provenance: v["provenance.header.enabled"]
})
