/** MirrorMaker 2's rules for rights, and where they are mended. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeEmbedded } from "../../../src/embedded/embedded.ts"
import {
  type Acl,
  aclKey,
  aclOfKey,
  aclSentence,
  ALLOW,
  DENY,
  LITERAL,
  OPERATIONS,
  planAcls,
  TOPIC_RESOURCE
} from "../../../src/mirror/control/acls.ts"
import { topicAcls } from "../../../src/mirror/control/aclSync.ts"
import type { TopicVerdict } from "../../../src/mirror/naming.ts"

const PREFIXED = 4
const GROUP = 3

const acl = (permission: "ALLOW" | "DENY", op: string, topic = "t", more: Partial<Acl> = {}): Acl => ({
  resourceType: TOPIC_RESOURCE,
  resourceName: topic,
  patternType: LITERAL,
  principal: "User:alice",
  host: "*",
  operation: OPERATIONS.indexOf(op),
  permissionType: permission === "ALLOW" ? ALLOW : DENY,
  ...more
})

const naming = {
  verdict: (topic: string): TopicVerdict =>
    topic.startsWith("private") || topic === "*"
      ? { mirrored: false, loop: false, reason: "" }
      : { mirrored: true, target: `east.${topic}` }
}

const plan = (
  source: ReadonlyArray<Acl>,
  target: ReadonlyArray<Acl> = [],
  more: Partial<Parameters<typeof planAcls>[0]> = {}
) =>
  planAcls({
    source,
    target,
    naming,
    topics: [{ source: "t", target: "east.t" }, { source: "u", target: "east.u" }],
    principal: "User:mirror",
    ours: new Set(),
    ...more
  })

const created = (...args: Parameters<typeof plan>): ReadonlyArray<string> => plan(...args).missing.map(aclSentence)

describe("rights that are copied", () => {
  it("ALLOW READ as it is, ALLOW ALL as READ, ALLOW WRITE not; every other ALLOW as it is", () => {
    const ops = ["READ", "DESCRIBE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "CREATE"]
    for (const op of ops) {
      assert.deepStrictEqual(created([acl("ALLOW", op)]), [`ALLOW User:alice from * to ${op} topic east.t`])
    }
    assert.deepStrictEqual(created([acl("ALLOW", "ALL")]), ["ALLOW User:alice from * to READ topic east.t"])
    assert.deepStrictEqual(created([acl("ALLOW", "WRITE")]), [])
  })

  it("every DENY of somebody else as it is, ALL and WRITE too", () => {
    for (const op of ["ALL", "WRITE", "READ"]) {
      assert.deepStrictEqual(created([acl("DENY", op)]), [`DENY User:alice from * to ${op} topic east.t`])
    }
  })

  it("with principal and host; only what is not there yet; once, however often it is on the source", () => {
    const there = acl("ALLOW", "READ", "east.t")
    const given = [acl("ALLOW", "READ"), acl("ALLOW", "ALL"), acl("ALLOW", "READ", "t", { host: "10.0.0.1" })]
    assert.deepStrictEqual(created(given, [there]), ["ALLOW User:alice from 10.0.0.1 to READ topic east.t"])
    assert.lengthOf(created([acl("ALLOW", "READ"), acl("ALLOW", "ALL")]), 1)
  })

  it("never prefixed names, other resources, or topics that are not mirrored", () => {
    assert.deepStrictEqual(
      created([
        acl("ALLOW", "READ", "t", { patternType: PREFIXED }),
        acl("ALLOW", "READ", "t", { resourceType: GROUP }),
        acl("ALLOW", "READ", "private.t")
      ]),
      []
    )
  })

  it("also of a topic that does not exist, as its name is mirrored", () => {
    assert.deepStrictEqual(created([acl("ALLOW", "READ", "later")]), [
      "ALLOW User:alice from * to READ topic east.later"
    ])
  })

  it("under the name that the topic has on the target", () => {
    const topics = [{ source: "t", target: "east.t.2" }]
    assert.deepStrictEqual(created([acl("ALLOW", "READ")], [], { topics }), [
      "ALLOW User:alice from * to READ topic east.t.2"
    ])
  })
})

describe("the traps", () => {
  it("a right on * is one on each mirrored topic, never on *", () => {
    const everything = { verdict: (topic: string): TopicVerdict => ({ mirrored: true, target: topic }) }
    assert.deepStrictEqual(created([acl("ALLOW", "READ", "*")], [], { naming: everything }), [
      "ALLOW User:alice from * to READ topic east.t",
      "ALLOW User:alice from * to READ topic east.u"
    ])
  })

  it("a DENY that hits the mirror is narrowed to READ or left out, and named", () => {
    for (const principal of ["User:*", "User:mirror"]) {
      const all = plan([acl("DENY", "ALL", "t", { principal })])
      assert.deepStrictEqual(all.missing.map(aclSentence), [`DENY ${principal} from * to READ topic east.t`])
      assert.match(all.notes.join(), /would lock the mirror out: it is copied as DENY READ/)
      for (const op of ["WRITE", "DESCRIBE", "ALTER_CONFIGS"]) {
        const left = plan([acl("DENY", op, "t", { principal })])
        assert.deepStrictEqual(left.missing, [])
        assert.match(left.notes.join(), new RegExp(`to ${op} topic east.t would lock the mirror out: it is not copied`))
      }
      assert.lengthOf(created([acl("DENY", "READ", "t", { principal })]), 1)
      assert.lengthOf(created([acl("DENY", "DELETE", "t", { principal })]), 1)
    }
  })

  it("a DENY of anybody counts as one that hits the mirror where only the brokers know who that is (TLS, OAuth)", () => {
    const unknown = { principal: null }
    const deny = (op: string) => plan([acl("DENY", op, "t", { principal: "User:dave" })], [], unknown)
    assert.deepStrictEqual(deny("ALL").missing.map(aclSentence), ["DENY User:dave from * to READ topic east.t"])
    assert.match(deny("ALL").notes.join(), /may lock the mirror out .*: it is copied as DENY READ/)
    assert.deepStrictEqual(deny("WRITE").missing, [])
    assert.match(deny("WRITE").notes.join(), /may lock the mirror out .*: it is not copied/)
    assert.lengthOf(deny("READ").missing, 1)
  })

  it("a DENY is created before any ALLOW", () => {
    assert.deepStrictEqual(created([acl("ALLOW", "READ"), acl("DENY", "DESCRIBE")]), [
      "DENY User:alice from * to DESCRIBE topic east.t",
      "ALLOW User:alice from * to READ topic east.t"
    ])
  })
})

describe("what the source revoked", () => {
  const read = acl("ALLOW", "READ", "east.t")
  const other = acl("ALLOW", "READ", "east.t", { principal: "User:bob" })
  const denied = acl("DENY", "DESCRIBE", "east.t")

  it("is what this flow has copied and nobody gave by hand; every ALLOW goes before every DENY", () => {
    const { revoked } = plan([], [denied, read, other], { ours: new Set([aclKey(denied), aclKey(read)]) })
    assert.deepStrictEqual(revoked, [read, denied])
  })

  it("is not what the source still has", () => {
    assert.deepStrictEqual(plan([acl("ALLOW", "ALL")], [read], { ours: new Set([aclKey(read)]) }).revoked, [])
  })

  it("is forgotten once it is gone from the target", () => {
    const { forgotten, revoked } = plan([], [], { ours: new Set([aclKey(read), "not a key"]) })
    assert.deepStrictEqual([forgotten, revoked], [[aclKey(read), "not a key"], []])
  })

  it("a key gives its right back, and nothing else does", () => {
    assert.deepStrictEqual(aclOfKey(aclKey(other)), other)
    for (const wrong of ["", "{}", "[1,2]", "[1,3,\"t\",\"p\",\"h\",\"x\",3]"]) assert.isNull(aclOfKey(wrong))
  })
})

it.effect("a cluster that does not know rights has none to mirror: nothing fails for it", () =>
  Effect.scoped(Effect.gen(function*() {
    const embedded = yield* makeEmbedded()
    const fiber = yield* Effect.forkChild(topicAcls(yield* embedded.cluster("flow")))
    for (let i = 0; i < 100 && fiber.pollUnsafe() === undefined; i++) yield* TestClock.adjust(50)
    assert.isNull(yield* Fiber.join(fiber))
  })))
