/** Where many groups stand, asked with few questions. The broker is a fake that counts them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { positionsOfAll } from "../../../src/mirror/control/groupPositions.ts"
import type { Cluster, Destination } from "../../../src/wire/cluster.ts"
import { type BrokerError, UnsupportedError } from "../../../src/wire/errors.ts"

const NOT_COORDINATOR = 16
const GROUP_AUTHORIZATION_FAILED = 30

interface Question {
  readonly to: Destination
  readonly groups: ReadonlyArray<string>
}

/** Broker n coordinates the groups that end in n; a group stands where its first number says. */
const world = (options: { readonly old?: boolean; readonly forbidden?: string } = {}) => {
  const asked: Array<Question> = []
  const request = (to: Destination, _api: unknown, value: unknown) =>
    Effect.suspend(() => {
      if (options.old === true && to.kind === "broker") {
        return Effect.fail(new UnsupportedError({ api: "OffsetFetch", broker: "1", what: "too old" } as never))
      }
      const body = (typeof value === "function" ? (value as (v: number) => unknown)(9) : value) as {
        readonly groups: ReadonlyArray<{ readonly groupId: string }>
      }
      const groups = body.groups.map(({ groupId }) => groupId)
      asked.push({ to, groups })
      return Effect.succeed({
        errorCode: 0,
        topics: [],
        groups: groups.map((groupId) => {
          const own = to.kind === "group" || groupId.endsWith(`-${to.kind === "broker" ? to.id : ""}`)
          const errorCode = groupId === options.forbidden
            ? GROUP_AUTHORIZATION_FAILED
            : own
            ? 0
            : NOT_COORDINATOR
          const partitions = [{
            partitionIndex: 0,
            committedOffset: Number(groupId.split("-")[0]),
            metadata: null,
            errorCode: 0
          }]
          return { groupId, errorCode, topics: errorCode === 0 ? [{ name: "t", partitions }] : [] }
        })
      })
    })
  const cluster = { name: "east", request, retrying: (effect: unknown) => effect } as unknown as Cluster
  return { asked, cluster }
}

const ids = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, n) => `${n}-${n % 2}`)
const groups = (names: ReadonlyArray<string>, broker: (id: string) => number | null) =>
  names.map((id) => ({ id, kind: "consumer" as const, broker: broker(id) }))
const home = (id: string): number => Number(id.split("-")[1])
const offset = (found: ReadonlyMap<string, unknown>, id: string): number | undefined =>
  (found.get(id) as ReadonlyMap<string, { readonly offset: number }>).get("t-0")?.offset

describe("where many groups stand", () => {
  it.effect("costs a question for a hundred groups of a broker", () =>
    Effect.gen(function*() {
      const { asked, cluster } = world()
      const names = ids(500)
      const found = yield* positionsOfAll(cluster, groups(names, home))
      assert.deepStrictEqual(names.map((id) => offset(found, id)), names.map((_, n) => n))
      assert.deepStrictEqual(
        asked.map((one) => [one.to.kind, one.groups.length]).toSorted(),
        [
          ...Array(4).fill(["broker", 100]),
          ...Array(2).fill(["broker", 50])
        ].toSorted()
      )
    }))

  it.effect("is asked one by one where the coordinator has moved, or is not known", () =>
    Effect.gen(function*() {
      const { asked, cluster } = world()
      const names = ids(4)
      const found = yield* positionsOfAll(
        cluster,
        groups(names, (id) => id === "2-0" ? 1 : id === "3-1" ? null : home(id))
      )
      assert.deepStrictEqual(names.map((id) => offset(found, id)), [0, 1, 2, 3])
      assert.deepStrictEqual(asked.filter(({ to }) => to.kind === "group").map((one) => one.groups), [["2-0"], ["3-1"]])
    }))

  it.effect("is asked one by one of brokers that take one group", () =>
    Effect.gen(function*() {
      const { asked, cluster } = world({ old: true })
      const found = yield* positionsOfAll(cluster, groups(ids(3), home))
      assert.deepStrictEqual(ids(3).map((id) => offset(found, id)), [0, 1, 2])
      assert.lengthOf(asked, 3)
    }))

  it.effect("is an error of the group that may not be read, and of no other", () =>
    Effect.gen(function*() {
      const { cluster } = world({ forbidden: "1-1" })
      const found = yield* positionsOfAll(cluster, groups(ids(4), home))
      assert.strictEqual((found.get("1-1") as BrokerError).code, GROUP_AUTHORIZATION_FAILED)
      assert.deepStrictEqual(["0-0", "2-0", "3-1"].map((id) => offset(found, id)), [0, 2, 3])
    }))
})
