import { assert, describe, it } from "@effect/vitest"
import { readKey, readPosition } from "../../src/mirror/mm2Positions.ts"

const key = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

describe("MirrorMaker's positions", () => {
  it("are read by what their key says, whatever the connector's name and the order of the fields", () => {
    const at = { topic: "orders", partition: 3 }
    assert.deepStrictEqual(
      readKey(
        Buffer.from("[\"MirrorSourceConnector\",{\"cluster\":\"east\",\"partition\":3,\"topic\":\"orders\"}]"),
        "east"
      ),
      at
    )
    assert.deepStrictEqual(readKey(key(["mine", { topic: "orders", cluster: "east", partition: 3 }]), "east"), at)
  })

  it("of other clusters, other connectors and whatever is not JSON are none", () => {
    for (
      const other of [
        key(["MirrorSourceConnector", { cluster: "west", partition: 3, topic: "orders" }]),
        key(["MirrorHeartbeatConnector", { sourceClusterAlias: "east", targetClusterAlias: "west" }]),
        key(["file", null]),
        key({ cluster: "east", partition: 3, topic: "orders" }),
        key(["x", { cluster: "east", partition: "3", topic: "orders" }]),
        Buffer.from("no JSON"),
        null
      ]
    ) assert.isNull(readKey(other, "east"))
  })

  it("go on behind the record that was sent last; a tombstone and nonsense are no position", () => {
    assert.strictEqual(readPosition(key({ offset: 41 })), 42)
    assert.strictEqual(readPosition(key({ offset: 0 })), 1)
    for (const value of [null, key({}), key({ offset: "41" }), key({ offset: 1.5 }), Buffer.from("x")]) {
      assert.isNull(readPosition(value))
    }
  })
})
