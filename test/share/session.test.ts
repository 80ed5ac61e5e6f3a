import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { nextEpoch, partitionKey, ShareSession, type TopicIdPartition } from "../../src/share/session.ts"

const partitions: ReadonlyArray<TopicIdPartition> = ["a", "b"].flatMap((topicId) =>
  [0, 1, 2].map((partition) => ({ topicId, partition }))
)
const some = fc.subarray([...partitions])
const keyed = (list: ReadonlyArray<TopicIdPartition>) => new Map(list.map((p) => [partitionKey(p), p]))

type Op =
  | {
    readonly kind: "fetch"
    readonly wanted: ReadonlyArray<TopicIdPartition>
    readonly acks: ReadonlyArray<TopicIdPartition>
  }
  | { readonly kind: "acknowledge" }
  | { readonly kind: "lost" }
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("fetch" as const), wanted: some, acks: some }) },
  { weight: 2, arbitrary: fc.constant({ kind: "acknowledge" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "lost" as const }) }
)

/** What the broker keeps of a session, as KIP-932 says. */
class BrokerSide {
  epoch = 0
  readonly partitions = new Set<string>()
  fetch(epoch: number, named: Iterable<string>, forgotten: Iterable<string>): void {
    if (epoch === 0) {
      this.partitions.clear()
      this.epoch = 1
    } else {
      assert.strictEqual(epoch, this.epoch, "the epoch the broker expects")
      this.epoch++
    }
    for (const key of named) this.partitions.add(key)
    for (const key of forgotten) this.partitions.delete(key)
  }
}

describe("a share session", () => {
  it("agrees with the broker about epoch and partitions after any requests and losses", () => {
    fc.assert(fc.property(fc.array(op, { maxLength: 30 }), (ops) => {
      const session = new ShareSession()
      const broker = new BrokerSide()
      for (const o of ops) {
        if (o.kind === "lost") session.reset()
        else if (o.kind === "acknowledge") {
          if (!session.isOpen) continue
          assert.strictEqual(session.epoch, broker.epoch)
          broker.epoch++
          session.acknowledged()
        } else {
          const acks = session.isOpen ? o.acks : []
          const plan = session.plan(keyed(o.wanted), new Set(acks.map(partitionKey)))
          broker.fetch(plan.epoch, [...plan.add, ...acks].map(partitionKey), plan.forget.map(partitionKey))
          session.fetched(plan, acks)
          assert.deepStrictEqual([...session.partitions.keys()].sort(), [...broker.partitions].sort())
          for (const p of o.wanted) assert.isTrue(broker.partitions.has(partitionKey(p)), "what is wanted is fetched")
        }
      }
    }))
  })

  it("without acknowledgements the broker fetches exactly what is wanted", () => {
    fc.assert(fc.property(fc.array(some, { minLength: 1, maxLength: 10 }), (wants) => {
      const session = new ShareSession()
      for (const wanted of wants) {
        session.fetched(session.plan(keyed(wanted), new Set()), [])
        assert.deepStrictEqual([...session.partitions.keys()].sort(), wanted.map(partitionKey).sort())
      }
    }))
  })

  it("a plan that is not answered changes nothing", () => {
    const session = new ShareSession()
    const wanted = keyed(partitions.slice(0, 2))
    assert.deepStrictEqual(session.plan(wanted, new Set()), session.plan(wanted, new Set()))
    assert.isFalse(session.isOpen)
  })

  it("a partition that is acknowledged is forgotten only by a later request", () => {
    const session = new ShareSession()
    const [one, two] = partitions as [TopicIdPartition, TopicIdPartition]
    session.fetched(session.plan(keyed([one, two]), new Set()), [])
    assert.deepStrictEqual(session.plan(keyed([one]), new Set([partitionKey(two)])).forget, [])
    assert.deepStrictEqual(session.plan(keyed([one]), new Set()).forget, [two])
  })

  it("epochs go round from the highest to 1, never to 0, which would open a new session", () => {
    assert.strictEqual(nextEpoch(0), 1)
    assert.strictEqual(nextEpoch(0x7fff_fffe), 0x7fff_ffff)
    assert.strictEqual(nextEpoch(0x7fff_ffff), 1)
  })

  it("each loss is a new generation that begins with an empty session at epoch 0", () => {
    const session = new ShareSession()
    session.fetched(session.plan(keyed(partitions), new Set()), [])
    const before = session.generation
    session.reset()
    assert.deepStrictEqual([session.epoch, session.generation, session.partitions.size], [0, before + 1, 0])
  })
})
