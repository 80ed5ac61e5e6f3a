/** A group's coordinator and member in one, for tests: assigns, revokes and answers commits as the test says. */
import { Effect } from "effect"
import { MembershipError } from "../../src/group/errors.ts"
import type { CommittedPosition, MakeMembership, MembershipHandlers } from "../../src/group/membership.ts"
import { partitionKey, type TopicPartition } from "../../src/group/position.ts"

export class FakeMembership {
  /** What happened, in order: "subscribe a,b", "commit a-0=5", "hook a-0", "left". */
  readonly events: Array<string> = []
  readonly committed = new Map<string, CommittedPosition>()
  /** Codes that the next commits answer with; a function decides by what is committed. */
  readonly commitCodes: Array<number | ((positions: ReadonlyArray<CommittedPosition>) => number)> = []
  /** The next commit waits for this before it answers. */
  gate: Effect.Effect<void> = Effect.void
  handlers: MembershipHandlers | null = null

  error(operation: string, code: number): MembershipError {
    return new MembershipError({ operation, groupId: "g", code, what: "as the test says" })
  }

  readonly make: MakeMembership = (_options, handlers) =>
    Effect.gen({ self: this }, function*() {
      this.handlers = handlers
      yield* Effect.addFinalizer(() => Effect.sync(() => void this.events.push("left")))
      return {
        subscribe: (topics) => Effect.sync(() => void this.events.push(`subscribe ${topics.join(",")}`)),
        commit: (positions) =>
          Effect.suspend(() => {
            const next = this.commitCodes.shift() ?? 0
            const code = typeof next === "number" ? next : next(positions)
            const words = positions.map((p) => `${partitionKey(p)}=${p.offset}`).join(" ")
            return this.gate.pipe(Effect.andThen(Effect.suspend(() => {
              this.events.push(code === 0 ? `commit ${words}` : `commit ${words} refused ${code}`)
              if (code !== 0) return Effect.fail(this.error("commit", code))
              for (const position of positions) this.committed.set(partitionKey(position), position)
              return Effect.void
            })))
          }),
        committed: (partitions) =>
          Effect.sync(() => partitions.flatMap((at) => this.committed.get(partitionKey(at)) ?? []))
      }
    })

  assign(...partitions: ReadonlyArray<TopicPartition>): Effect.Effect<void> {
    return (this.handlers as MembershipHandlers).assigned(partitions)
  }
  revoke(...partitions: ReadonlyArray<TopicPartition>): Effect.Effect<void> {
    return (this.handlers as MembershipHandlers).revoked(partitions).pipe(
      Effect.tap(() => Effect.sync(() => void this.events.push(`given up ${partitions.map(partitionKey).join(",")}`)))
    )
  }
  lose(...partitions: ReadonlyArray<TopicPartition>): Effect.Effect<void> {
    return (this.handlers as MembershipHandlers).lost(partitions)
  }
}
