import { assert, describe, it } from "vitest"
import { makeNaming, type NamingRules } from "../../src/mirror/naming.ts"

const rules = (changes: Partial<NamingRules> = {}): NamingRules => ({
  sourceAlias: "east",
  targetAlias: "west",
  aliases: new Set(["east", "west", "north"]),
  policy: "default",
  separator: ".",
  mapping: new Map(),
  include: [".*"],
  exclude: [],
  ...changes
})

const target = (topic: string, changes: Partial<NamingRules> = {}): string | null => {
  const verdict = makeNaming(rules(changes)).verdict(topic)
  return verdict.mirrored ? verdict.target : null
}

describe("which topics are mirrored, and under which name", () => {
  it("the default policy puts the source's alias before the name, identity leaves it", () => {
    assert.strictEqual(target("orders"), "east.orders")
    assert.strictEqual(target("orders", { policy: "identity" }), "orders")
    assert.strictEqual(target("orders", { separator: "_" }), "east_orders")
  })

  it("patterns match whole names only, and exclude wins", () => {
    assert.isNull(target("orders-2", { include: ["orders"] }))
    assert.isNull(target("my-orders", { include: ["orders"] }))
    assert.strictEqual(target("orders", { include: ["o|orders"] }), "east.orders")
    assert.isNull(target("payments.tmp", { include: ["payments.*"], exclude: ["payments\\.tmp"] }))
  })

  it("a topic that came from the target is not sent back, through however many clusters", () => {
    assert.isNull(target("west.orders"))
    assert.isNull(target("north.west.orders"))
    assert.strictEqual(target("north.orders"), "east.north.orders")
  })

  it("a local topic with dots is no remote topic: only aliases of the configuration are prefixes", () => {
    assert.strictEqual(target("orders.west.v1"), "east.orders.west.v1")
    assert.strictEqual(target("westward.orders"), "east.westward.orders")
  })

  it("topic.mapping names a topic before the policy, also one that looks remote", () => {
    const mapping = new Map([["west.orders", "orders-of-west"]])
    assert.strictEqual(target("west.orders", { mapping }), "orders-of-west")
    assert.strictEqual(target("orders", { mapping }), "east.orders")
  })

  it("what a topic that looks remote would be called on the target is told, behind all that it came through since", () => {
    const origin = (topic: string) => {
      const verdict = makeNaming(rules()).verdict(topic)
      return verdict.mirrored ? null : verdict.origin
    }
    assert.strictEqual(origin("west.orders"), "orders")
    assert.strictEqual(origin("north.west.orders"), "orders")
    assert.strictEqual(origin("west.north.orders"), "north.orders")
  })

  it("internal topics are mirrored only when topic.mapping names them", () => {
    for (const topic of ["__onceover_ledger_f", ".hidden", "mm2-offset-syncs.x.internal", "a.checkpoints.internal"]) {
      assert.isNull(target(topic))
      assert.strictEqual(target(topic, { mapping: new Map([[topic, "copy"]]) }), "copy")
    }
    assert.strictEqual(target("orders.internal"), "east.orders.internal")
  })

  it("on one cluster, what the flow writes is not read again, with either policy and with a mapping", () => {
    const one = { sameCluster: true }
    assert.strictEqual(target("orders", one), "east.orders")
    assert.isNull(target("east.orders", one))
    assert.isNull(target("orders", { ...one, policy: "identity" }))
    const mapping = new Map([["a", "b"]])
    assert.strictEqual(target("a", { ...one, policy: "identity", mapping }), "b")
    assert.isNull(target("b", { ...one, policy: "identity", mapping }))
    assert.isNull(target("b", { ...one, mapping }))
    assert.strictEqual(target("c", { ...one, mapping }), "east.c")
    assert.strictEqual(target("east.orders"), "east.east.orders")
  })

  it("topics of heartbeats are mirrored whatever the patterns say, where that is on, and never back", () => {
    const heartbeats = true
    for (const policy of ["default", "identity"] as const) {
      const none = { heartbeats, policy, include: ["orders"], exclude: [".*"] }
      assert.strictEqual(target("heartbeats", none), "east.heartbeats")
      assert.strictEqual(target("north.heartbeats", none), "east.north.heartbeats")
      assert.strictEqual(target("of-no-configuration.heartbeats", none), "east.of-no-configuration.heartbeats")
      for (const topic of ["west.heartbeats", "of-no-configuration.west.heartbeats", "my-heartbeats"]) {
        assert.isNull(target(topic, none), topic)
      }
      assert.isNull(target("heartbeats", { ...none, heartbeats: false }))
      assert.isNull(target("east.heartbeats", { ...none, sameCluster: true }))
    }
    // Kept names would send it round for ever.
    const kept = { policy: "identity" } as const
    assert.strictEqual(target("heartbeats", kept), "east.heartbeats")
    assert.isNull(target("west.heartbeats", kept))
    assert.strictEqual(target("heartbeats", { heartbeats, mapping: new Map([["heartbeats", "beats"]]) }), "beats")
  })

  it("a loop is told apart from a topic that nobody asked for", () => {
    const loop = makeNaming(rules()).verdict("west.orders")
    const unasked = makeNaming(rules({ include: ["orders"] })).verdict("payments")
    assert.isTrue(!loop.mirrored && loop.loop)
    assert.isTrue(!unasked.mirrored && !unasked.loop)
  })
})
