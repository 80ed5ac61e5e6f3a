/** MirrorMaker 2's formats: the bytes that its own classes (connect-mirror-client 4.3.1) write. */
import { assert, describe, it } from "vitest"
import { newestPair } from "../../../src/mirror/control/mm2Emitters.ts"
import {
  checkpointRecord,
  checkpointsTopic,
  heartbeatRecord,
  type KeyValue,
  offsetSyncRecord,
  offsetSyncsTopic
} from "../../../src/mirror/control/mm2Formats.ts"
import { exactRun, Runs } from "../../../src/mirror/offsets/runs.ts"

const hex = ({ key, value }: KeyValue) => ({ key: key.toString("hex"), value: value.toString("hex") })

describe("what MirrorMaker 2's clients read", () => {
  it("a heartbeat", () => {
    assert.deepStrictEqual(hex(heartbeatRecord("src", "dst", 1_700_000_000_000)), {
      key: "00037372630003647374",
      value: "00000000018bcfe56800"
    })
  })
  it("a checkpoint", () => {
    const at = { group: "g1", topic: "src.t1", partition: 3, upstream: 42, downstream: 7, metadata: "" }
    assert.deepStrictEqual(hex(checkpointRecord(at)), {
      key: "0002673100067372632e743100000003",
      value: "0000000000000000002a00000000000000070000"
    })
  })
  it("an offset sync", () => {
    assert.deepStrictEqual(hex(offsetSyncRecord({ topic: "t1", partition: 3, upstream: 42, downstream: 7 })), {
      key: "0002743100000003",
      value: "000000000000002a0000000000000007"
    })
  })
  it("in topics of its names", () => {
    assert.strictEqual(checkpointsTopic("east", "."), "east.checkpoints.internal")
    assert.strictEqual(offsetSyncsTopic("west", "."), "mm2-offset-syncs.west.internal")
    assert.strictEqual(offsetSyncsTopic("west", "_"), "mm2-offset-syncs_west_internal")
  })
  it("a pair is given only where every record behind it on the source is behind it on the target", () => {
    const runs = new Runs()
    for (const run of [exactRun(0, 10, 0), exactRun(10, 10, 30), exactRun(20, 10, 20)]) runs.add(run)
    const at = { topic: "t", partition: 0 }
    assert.deepStrictEqual(newestPair(runs, 100, at), { ...at, upstream: 29, downstream: 29 })
    assert.deepStrictEqual(newestPair(runs, 25, at), { ...at, upstream: 9, downstream: 9 })
    assert.isNull(newestPair(runs, 5, at))
  })
})
