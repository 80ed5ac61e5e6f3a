/**
 * Which settings of a target topic have to change so that it is set as its source is. Pure.
 *
 * As in MirrorMaker 2: settings that are read-only or secret stay behind, so do those of `config.properties.exclude`,
 * and a setting that the source topic does not set itself is the target's default (or, as told, the source's value).
 * Not as in MirrorMaker 2: only what differs is changed; what is pinned on the target stays; and values that come from
 * a cluster-wide default of the source, dynamic ones too, are the source cluster's affair and are not frozen into the
 * topic.
 */
import type { ControlSettings } from "../../config/controlSettings.ts"

/** DescribeConfigs' ConfigSource. */
const OF_THE_TOPIC = 1

/** One setting of a topic as a broker describes it. */
export interface TopicSetting {
  readonly name: string
  readonly value: string | null
  readonly readOnly: boolean
  readonly isSensitive: boolean
  readonly configSource: number
}

/** `to` null: the topic's own value is taken back, so that the default holds. */
export interface SettingChange {
  readonly name: string
  readonly from: string | null
  readonly to: string | null
}

export interface SettingRules {
  /** Whether a setting may be copied to this target topic. */
  readonly copies: (targetTopic: string, setting: string) => boolean
  readonly defaultsFrom: "target" | "source"
}

const anchored = (patterns: ReadonlyArray<string>): RegExp | null =>
  patterns.length === 0 ? null : new RegExp(`^(?:${patterns.map((p) => `(?:${p})`).join("|")})$`)

export const settingRules = (
  control: Pick<ControlSettings, "settingsExclude" | "settingsPinned" | "useDefaultsFrom">
): SettingRules => {
  const excluded = anchored(control.settingsExclude)
  const pins = [...control.settingsPinned].map(([topic, names]) => ({
    topic: anchored([topic]),
    names: anchored(names)
  }))
  return {
    copies: (targetTopic, setting) =>
      excluded?.test(setting) !== true &&
      !pins.some(({ names, topic }) => topic?.test(targetTopic) === true && names?.test(setting) === true),
    defaultsFrom: control.useDefaultsFrom
  }
}

const plain = (setting: TopicSetting): boolean => !setting.readOnly && !setting.isSensitive
const own = (setting: TopicSetting): boolean => setting.configSource === OF_THE_TOPIC

/** What a target topic is created with. */
export const settingsAtCreation = (
  source: ReadonlyArray<TopicSetting>,
  targetTopic: string,
  rules: SettingRules
): ReadonlyArray<{ readonly name: string; readonly value: string | null }> =>
  source
    .filter((setting) => plain(setting) && rules.copies(targetTopic, setting.name))
    .filter((setting) => own(setting) || rules.defaultsFrom === "source")
    .map(({ name, value }) => ({ name, value }))

/** What has to change on a target topic that is there. */
export const settingChanges = (
  source: ReadonlyArray<TopicSetting>,
  target: ReadonlyArray<TopicSetting>,
  targetTopic: string,
  rules: SettingRules
): ReadonlyArray<SettingChange> => {
  const there = new Map(target.map((setting) => [setting.name, setting]))
  const changes: Array<SettingChange> = []
  for (const setting of source) {
    if (!plain(setting) || !rules.copies(targetTopic, setting.name)) continue
    const now = there.get(setting.name)
    // A setting that the target does not know at all is tried all the same: the refusal names it.
    const from = now?.value ?? null
    if (own(setting) || rules.defaultsFrom === "source") {
      if (setting.value !== null && from !== setting.value && (own(setting) || now !== undefined)) {
        changes.push({ name: setting.name, from, to: setting.value })
      }
    } else if (now !== undefined && own(now)) changes.push({ name: setting.name, from, to: null })
  }
  return changes
}

export const changeSentence = (topic: string, { from, name, to }: SettingChange): string =>
  to === null
    ? `topic ${topic}: ${name} goes back from ${from ?? "nothing"} to the target's default`
    : `topic ${topic}: ${name} is set from ${from ?? "nothing"} to ${to}`
