/** The command line of `onceover offsets`, and what it prints. */
import { assert, describe, it } from "vitest"
import { parseCommandLine, UsageError } from "../../src/cli/commandLine.ts"
import { offsetsOk, renderOffsets } from "../../src/cli/offsetsCommand.ts"
import type { OffsetRow } from "../../src/mirror/offsetsService.ts"

const parsed = (...args: ReadonlyArray<string>) => {
  const line = parseCommandLine(["offsets", ...args])
  return line instanceof UsageError ? line.message.replace(/ \(onceover --help.*/, "") : line
}

const row: OffsetRow = {
  flow: "f",
  group: "app",
  kind: "consumer",
  sourceTopic: "t",
  sourcePartition: 0,
  sourceOffset: 37,
  targetTopic: "east.t",
  targetPartition: 0,
  targetOffset: 41,
  exact: true,
  committed: null,
  state: "behind",
  reason: null
}

describe("onceover offsets", () => {
  it("asks for groups, for one group, or for a position", () => {
    const head = { command: "offsets", file: "f.yaml", json: false } as const
    assert.deepStrictEqual(parsed("list", "f.yaml"), {
      ...head,
      request: { flow: null, question: { kind: "list" as const, group: null } }
    })
    assert.deepStrictEqual(parsed("translate", "f.yaml", "--topic", "t", "--offset", "5", "--json", "--flow", "x"), {
      ...head,
      json: true,
      request: { flow: "x", question: { kind: "position", topic: "t", partition: 0, offset: 5, reverse: false } }
    })
    assert.deepStrictEqual(parsed("translate", "f.yaml", "--group", "g", "--reverse", "--commit"), {
      ...head,
      request: { flow: null, question: { kind: "group", group: "g", reverse: true, commit: true } }
    })
  })

  it("says what is missing or does not belong there", () => {
    assert.strictEqual(parsed(), "offsets needs list or translate")
    assert.strictEqual(parsed("show", "f.yaml"), "offsets needs list or translate, but got \"show\"")
    assert.strictEqual(parsed("list"), "offsets list needs the path of a configuration file")
    assert.strictEqual(parsed("list", "a", "b"), "offsets list takes one configuration file, but got \"b\" too")
    assert.strictEqual(parsed("list", "a", "--commit"), "--commit belongs to offsets translate")
    assert.strictEqual(parsed("translate", "a"), "translate needs --group GROUP, or --topic TOPIC with --offset N")
    assert.strictEqual(parsed("translate", "a", "--topic", "t"), "translate needs --offset N")
    assert.strictEqual(
      parsed("translate", "a", "--topic", "t", "--offset", "1x"),
      "--offset is \"1x\"; allowed: a whole number from 0"
    )
    assert.strictEqual(parsed("translate", "a", "--topic", "t", "--offset", "1", "--commit"), "--commit needs --group")
    assert.strictEqual(parsed("translate", "a", "--group", "g", "--offset", "1"), "--offset does not go with --group")
  })

  it("prints a table, and fails where something is not known or was not written", () => {
    assert.strictEqual(
      renderOffsets([row, { ...row, targetOffset: null, exact: false, state: "unmapped", reason: "why" }], false),
      [
        "group  source  offset  target    offset  on target",
        "app    t-0         37  east.t-0      41       none  behind",
        "app    t-0         37  east.t-0       ?       none  unmapped: why",
        ""
      ].join("\n")
    )
    assert.isTrue(offsetsOk([row], false))
    assert.isFalse(offsetsOk([row], true))
    assert.isFalse(offsetsOk([{ ...row, exact: false }], false))
  })
})
