import { assert, describe, it } from "vitest"
import { timestampDifferences } from "../../src/mirror/timestampLimits.ts"

const HOUR = "3600000"
const NONE = "9223372036854775807"
const settings = (after: string | null, before: string | null, type = "CreateTime") =>
  [
    ["message.timestamp.type", type],
    ["message.timestamp.after.max.ms", after],
    ["message.timestamp.before.max.ms", before]
  ].map(([name, value]) => ({ name: name as string, value: value as string | null }))

describe("timestamps that a target topic would not take as they are", () => {
  it("are those beyond a limit that the source has not, or has wider", () => {
    const differences = timestampDifferences(settings(NONE, NONE), settings(HOUR, NONE))
    assert.lengthOf(differences, 1)
    assert.match(differences[0] ?? "", /^refuses .*after\.max\.ms is 3600000 there and 9223372036854775807 here/)
    assert.lengthOf(timestampDifferences(settings(null, null), settings(HOUR, HOUR)), 2)
  })

  it("are none where the limits are as wide, or nothing limits them", () => {
    assert.deepStrictEqual(timestampDifferences(settings(HOUR, NONE), settings(HOUR, NONE)), [])
    assert.deepStrictEqual(timestampDifferences(settings(HOUR, HOUR), settings(NONE, NONE)), [])
    assert.deepStrictEqual(timestampDifferences(settings(null, null), settings(NONE, NONE)), [])
    assert.deepStrictEqual(timestampDifferences(settings(NONE, NONE), settings(null, null)), [])
  })

  it("are all where the target writes its own time and the source does not", () => {
    const own = settings(HOUR, HOUR, "LogAppendTime")
    assert.match(timestampDifferences(settings(NONE, NONE), own).join(), /^rewrites timestamps/)
    assert.deepStrictEqual(timestampDifferences(settings(NONE, NONE, "LogAppendTime"), own), [])
  })
})
