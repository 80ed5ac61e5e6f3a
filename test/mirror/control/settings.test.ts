/** The difference of two topics' settings, case by case. */
import { assert, describe, it } from "@effect/vitest"
import {
  settingChanges,
  settingRules,
  settingsAtCreation,
  type TopicSetting
} from "../../../src/mirror/control/settings.ts"

const DEFAULT = 5
const OF_TOPIC = 1
const DYNAMIC_BROKER = 3
const STATIC_BROKER = 4

const setting = (name: string, value: string, configSource = OF_TOPIC, more: Partial<TopicSetting> = {}) => ({
  name,
  value,
  configSource,
  readOnly: false,
  isSensitive: false,
  ...more
})

const rules = (over: Partial<Parameters<typeof settingRules>[0]> = {}) =>
  settingRules({ settingsExclude: [], settingsPinned: new Map(), useDefaultsFrom: "target", ...over })

const changes = (
  source: ReadonlyArray<TopicSetting>,
  target: ReadonlyArray<TopicSetting>,
  with_: Parameters<typeof rules>[0] = {}
) => settingChanges(source, target, "east.t", rules(with_)).map(({ name, to }) => `${name}=${to}`)

describe("what changes on the target", () => {
  it("is only what differs in effect", () => {
    const source = [setting("a", "1"), setting("b", "2"), setting("c", "3")]
    const target = [setting("a", "1"), setting("b", "1", DEFAULT), setting("c", "3", DEFAULT)]
    assert.deepStrictEqual(changes(source, target), ["b=2"])
  })

  it("takes back what only the target topic sets, and leaves what comes from its brokers", () => {
    const source = [setting("a", "1", DEFAULT), setting("b", "1", STATIC_BROKER)]
    assert.deepStrictEqual(changes(source, [setting("a", "9"), setting("b", "9", STATIC_BROKER)]), ["a=null"])
  })

  it("is not what is pinned: by pattern of the target topic and of the setting", () => {
    const source = [setting("retention.ms", "1"), setting("retention.bytes", "1"), setting("x", "1", DEFAULT)]
    const target = [setting("retention.ms", "7"), setting("retention.bytes", "7"), setting("x", "7")]
    const pinned = (topic: string, ...names: ReadonlyArray<string>) => ({ settingsPinned: new Map([[topic, names]]) })
    assert.deepStrictEqual(changes(source, target, pinned("east\\..*", "retention\\.ms")), [
      "retention.bytes=1",
      "x=null"
    ])
    assert.deepStrictEqual(changes(source, target, pinned("east\\.t", "retention\\..*", "x")), [])
    assert.lengthOf(changes(source, target, pinned("east", "retention\\..*")), 3)
  })

  it("is not what is excluded, read-only or secret", () => {
    const source = [
      setting("min.insync.replicas", "2"),
      setting("r", "1", OF_TOPIC, { readOnly: true }),
      setting("s", "1", OF_TOPIC, { isSensitive: true })
    ]
    assert.deepStrictEqual(changes(source, [], { settingsExclude: ["min\\.insync\\.replicas"] }), [])
  })

  it("is not a default of the source's brokers, unless defaults come from the source", () => {
    const source = [setting("a", "1", DYNAMIC_BROKER), setting("b", "2", DEFAULT)]
    const target = [setting("a", "9", DEFAULT), setting("b", "2", DEFAULT)]
    assert.deepStrictEqual(changes(source, target), [])
    assert.deepStrictEqual(changes(source, target, { useDefaultsFrom: "source" }), ["a=1"])
  })

  it("is tried also where the target does not know the setting, so that its refusal names it", () => {
    assert.deepStrictEqual(changes([setting("new.setting", "1")], []), ["new.setting=1"])
  })
})

describe("what a topic is created with", () => {
  it("is what the source topic sets itself, without what is excluded or pinned", () => {
    const source = [
      setting("cleanup.policy", "compact"),
      setting("retention.ms", "5", DYNAMIC_BROKER),
      setting("min.insync.replicas", "2"),
      setting("segment.ms", "7")
    ]
    const with_ = rules({
      settingsExclude: ["min\\.insync\\.replicas"],
      settingsPinned: new Map([[".*", ["segment\\.ms"]]])
    })
    assert.deepStrictEqual(settingsAtCreation(source, "east.t", with_), [{ name: "cleanup.policy", value: "compact" }])
  })
})
