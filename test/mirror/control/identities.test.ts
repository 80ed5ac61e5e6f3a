/** What becomes of a topic by its id, for each policy; no broker. */
import { assert, describe, it } from "@effect/vitest"
import {
  identitiesOf,
  isRemote,
  noteOf,
  remoteNote,
  type Situation,
  standingOf
} from "../../../src/mirror/control/identities.ts"
import { ZERO_UUID } from "../../../src/wire/schema.ts"

type Policy = Situation["policy"]

/** The notes of these ids, first seen first. */
const notes = (...ids: ReadonlyArray<readonly [id: string, suffix: string]>) =>
  new Map(ids.map(([id, suffix]) => noteOf("t", id, suffix) as [string, string]))

const stand = (
  id: string,
  known: ReadonlyMap<string, string>,
  { onTarget = ["east.t"], policy = "restart", taken = ["east.t"] }: {
    readonly policy?: Policy
    readonly onTarget?: ReadonlyArray<string>
    readonly taken?: ReadonlyArray<string>
  } = {}
) =>
  standingOf({ topic: "t", id, base: "east.t" }, {
    policy,
    identities: identitiesOf(known),
    onTarget: (name) => onTarget.includes(name),
    taken: (name) => taken.includes(name)
  })

describe("a topic of the source", () => {
  it("that was never seen goes to its name, and is noted", () => {
    const standing = stand("a", new Map())
    assert.deepInclude(standing, { kind: "new", target: "east.t" })
    assert.deepStrictEqual(standing.kind === "new" ? standing.note : null, noteOf("t", "a", ""))
  })

  it("that is noted goes where the note says, whatever the policy", () => {
    for (const policy of ["restart", "pause", "new-topic"] as const) {
      assert.deepStrictEqual(stand("b", notes(["a", ""], ["b", ".2"]), { policy }), {
        kind: "known",
        target: "east.t.2"
      })
      assert.deepStrictEqual(stand("a", notes(["a", ""], ["b", ".2"]), { policy }), { kind: "known", target: "east.t" })
    }
  })

  it("of a broker without topic ids is taken for the one of its name", () => {
    assert.deepStrictEqual(stand(ZERO_UUID, notes(["a", ""])), { kind: "known", target: "east.t" })
  })
})

describe("a topic that was created again", () => {
  it("goes behind the old one with restart, and says so", () => {
    const standing = stand("b", notes(["a", ""]))
    assert.deepInclude(standing, { kind: "recreated", target: "east.t", note: noteOf("t", "b", "") })
    assert.match(standing.kind === "recreated" ? standing.says : "", /deleted and created again.*behind what is there/)
  })

  it("stays where it went last when the policy has become restart", () => {
    const onTarget = ["east.t", "east.t.2"]
    assert.deepInclude(stand("c", notes(["a", ""], ["b", ".2"]), { onTarget }), {
      kind: "recreated",
      target: "east.t.2"
    })
  })

  it("waits with pause, until the target topic is deleted", () => {
    const standing = stand("b", notes(["a", ""]), { policy: "pause" })
    assert.match(
      standing.kind === "paused" ? standing.reason : "",
      /restart or new-topic, or the topic east\.t is deleted/
    )
    assert.deepInclude(stand("b", notes(["a", ""]), { policy: "pause", onTarget: [] }), {
      kind: "recreated",
      target: "east.t"
    })
  })

  it("gets a topic of its own with new-topic, never one that is somebody else's", () => {
    const policy = "new-topic"
    assert.deepInclude(stand("b", notes(["a", ""]), { policy }), { kind: "recreated", target: "east.t.2" })
    assert.deepInclude(stand("c", notes(["a", ""], ["b", ".2"]), { policy, onTarget: ["east.t", "east.t.2"] }), {
      target: "east.t.3"
    })
    const taken = ["east.t", "east.t.2"]
    assert.deepInclude(stand("b", notes(["a", ""]), { policy, taken }), { target: "east.t.3" })
    assert.deepInclude(stand("b", notes(["a", ""]), { policy, onTarget: taken }), { target: "east.t.3" })
  })
})

describe("notes", () => {
  it("that are none of ours are nothing", () => {
    const strange = new Map([["x", "y"], ["[]", ""], ["[\"topic\",\"t\"]", "{}"], [noteOf("t", "a", "")[0], "{"]])
    assert.strictEqual(identitiesOf(strange).size, 0)
  })

  it("remember that a topic came from the target", () => {
    const known = new Map([remoteNote("west.t") as [string, string]])
    assert.isTrue(isRemote(known, "west.t"))
    assert.isFalse(isRemote(known, "west.u"))
    assert.strictEqual(identitiesOf(known).size, 0)
  })
})
