/** What the log and /status say of groups. */
import { assert, describe, it } from "@effect/vitest"
import type { GroupOffset } from "../../../src/mirror/control/groupSync.ts"
import { groupSentences } from "../../../src/mirror/offsets/flowOffsets.ts"

const row = (state: GroupOffset["state"], partition = 0): GroupOffset => ({
  group: "app",
  kind: "consumer",
  topic: "orders",
  partition,
  position: 1,
  targetTopic: "elsewhere",
  targetPartition: 2,
  targetPosition: 1,
  targetCurrent: null,
  metadata: "",
  state,
  reason: "because"
})
const said = (...rows: ReadonlyArray<GroupOffset>) => groupSentences(rows, new Set(["failed", "unmapped"]))

describe("a group", () => {
  it("that the target refuses is told with the place there, also of a topic that a transform names", () => {
    assert.deepStrictEqual(said(row("failed"), row("active")), [
      "group app cannot be moved on the target: because (elsewhere-2)"
    ])
  })

  it("that has no place there yet is told with the one on the source, and with a number where it has several", () => {
    assert.deepStrictEqual(said(row("unmapped")), ["group app has no translated offset: because (orders-0)"])
    assert.deepStrictEqual(said(row("unmapped"), row("unmapped", 1)), [
      "group app has no translated offset: because (2 partitions)"
    ])
  })
})
