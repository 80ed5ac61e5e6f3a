/**
 * A consumer group's coordinator and its members' side of it, without librdkafka: assigns, revokes, expires who is not
 * heard of, and takes commits only from who owns the partition. A member that is stopped does not hear that it was
 * expired until it goes on, and until then believes that it owns what it had.
 */
import { Effect } from "effect"
import { MembershipError } from "../../src/group/errors.ts"
import type { CommittedPosition, MakeMembership, MembershipHandlers } from "../../src/group/membership.ts"
import type { Dice } from "./dice.ts"
import type { History } from "./history.ts"
import type { Gate, Loop } from "./loop.ts"
import type { Network } from "./network.ts"

export interface CoordinatorOptions {
  readonly loop: Loop
  readonly dice: Dice
  readonly history: History
  readonly network: Network
  readonly topic: string
  readonly partitions: number
  readonly sessionTimeoutMs: number
  readonly lossRate: number
  readonly onCommitted: (partition: number, offset: number) => void
}

interface Member {
  readonly name: string
  readonly gate: Gate
  readonly handlers: MembershipHandlers
  readonly run: (effect: Effect.Effect<void>, done: () => void) => void
  /** What it was given and has not given up. */
  readonly owned: Set<number>
  /** Being given up. */
  readonly revoking: Set<number>
  lastSeenMs: number
  left: boolean
}

const HEARTBEAT_MS = 200
const TIMED_OUT = -185
const UNKNOWN_MEMBER_ID = 25

export class Coordinator {
  readonly #options: CoordinatorOptions
  /** In the order they joined. */
  #members: Array<Member> = []
  readonly #committed = new Map<number, CommittedPosition>()

  constructor(options: CoordinatorOptions) {
    this.#options = options
    options.loop.after(HEARTBEAT_MS, () => this.#beat())
  }

  readonly membership = (name: string, gate: Gate): MakeMembership => (_options, handlers) =>
    Effect.gen({ self: this }, function*() {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const member: Member = {
        name,
        gate,
        handlers,
        run: (effect, done) => {
          const fiber = fork(effect)
          fiber.addObserver(() => done())
        },
        owned: new Set(),
        revoking: new Set(),
        lastSeenMs: this.#options.loop.nowMs,
        left: false
      }
      yield* Effect.addFinalizer(() => this.#leaving(member))
      return {
        subscribe: (topics) =>
          Effect.sync(() => topics.length === 0 ? this.#remove(member, "leaves") : this.#join(member)),
        commit: (positions) => this.#asked("commit", member, () => this.#commit(member, positions)),
        committed: (partitions) =>
          this.#asked(
            "committed",
            member,
            () => partitions.flatMap(({ partition }) => this.#committed.get(partition) ?? [])
          )
      }
    })

  #clientOf(member: Member): string {
    return member.name.slice(0, member.name.indexOf("/"))
  }
  /** A process that is stopped has a network: what it has sent arrives. */
  #linked(member: Member): boolean {
    const { clogged, cut } = this.#options.network
    const client = this.#clientOf(member)
    return !cut.has(client) && !clogged.has(`${client} source`)
  }
  #reachable(member: Member): boolean {
    return !member.gate.closed && this.#linked(member)
  }

  /** A request to the coordinator and back, with what may happen to it. */
  #asked<A>(operation: string, member: Member, ask: () => A | number): Effect.Effect<A, MembershipError> {
    const { dice, loop, lossRate, network } = this.#options
    const error = (code: number) => new MembershipError({ operation, groupId: "mirror", code, what: `code ${code}` })
    return Effect.callback<A, MembershipError>((resume) => {
      const answer = (effect: Effect.Effect<A, MembershipError>, delayMs: number) =>
        loop.after(delayMs, () => member.gate.pass(() => resume(effect)))
      loop.after(dice.int(1, 5), () => {
        const linked = this.#linked(member)
        const lost = !linked || (network.rough && dice.chance(lossRate))
        if (lost && (!linked || dice.chance(0.5))) return void answer(Effect.fail(error(TIMED_OUT)), 1_000)
        const result = ask()
        if (lost) answer(Effect.fail(error(TIMED_OUT)), 1_000)
        else answer(typeof result === "number" ? Effect.fail(error(result)) : Effect.succeed(result), dice.int(1, 5))
      })
    })
  }

  #commit(member: Member, positions: ReadonlyArray<CommittedPosition>): undefined | number {
    const owner = this.#members.includes(member) && positions.every(({ partition }) => member.owned.has(partition))
    if (!owner || this.#options.network.cut.has(this.#clientOf(member))) return UNKNOWN_MEMBER_ID
    for (const position of positions) {
      this.#committed.set(position.partition, position)
      this.#options.onCommitted(position.partition, position.offset)
    }
    return undefined
  }

  #join(member: Member): void {
    if (this.#members.includes(member) || member.left) return
    this.#options.history.add(member.name, "joins the group")
    member.lastSeenMs = this.#options.loop.nowMs
    this.#members.push(member)
    this.#balance()
  }

  /** What is still owned is given up first, as librdkafka does when it closes. */
  #leaving(member: Member): Effect.Effect<void> {
    return Effect.suspend(() => {
      member.left = true
      const here = this.#members.includes(member)
      const owned = this.#at([...member.owned].filter((partition) => !member.revoking.has(partition)))
      if (!here || owned.length === 0 || !this.#reachable(member)) {
        if (this.#reachable(member)) this.#remove(member, "leaves")
        return Effect.void
      }
      return Effect.andThen(
        member.handlers.revoked(owned),
        Effect.sync(() => {
          if (this.#reachable(member)) this.#remove(member, "leaves")
        })
      )
    })
  }

  #remove(member: Member, why: string): void {
    if (!this.#members.includes(member)) return
    this.#options.history.add(member.name, `${why} (group)`)
    this.#members = this.#members.filter((other) => other !== member)
    member.owned.clear()
    member.revoking.clear()
    this.#balance()
  }

  #beat(): void {
    const { loop, sessionTimeoutMs } = this.#options
    for (const member of [...this.#members]) {
      if (!member.left && this.#reachable(member)) member.lastSeenMs = loop.nowMs
      else if (loop.nowMs - member.lastSeenMs >= sessionTimeoutMs) this.#expire(member, "is not heard of any more")
    }
    loop.after(HEARTBEAT_MS, () => this.#beat())
  }

  /** Others get its partitions now; it learns of it when it can, and joins again. */
  #expire(member: Member, why: string): void {
    const had = this.#at(member.owned)
    this.#remove(member, why)
    const tell = (): void => {
      const client = this.#clientOf(member)
      if (this.#options.network.cut.has(client) || member.left) return
      if (this.#options.network.clogged.has(`${client} source`)) {
        this.#options.loop.after(HEARTBEAT_MS, () => member.gate.pass(tell))
      } else member.run(had.length === 0 ? Effect.void : member.handlers.lost(had), () => this.#join(member))
    }
    member.gate.pass(tell)
  }

  #at(partitions: Iterable<number>) {
    return [...partitions].map((partition) => ({ topic: this.#options.topic, partition }))
  }

  #wanted(): Map<number, Member> {
    const wanted = new Map<number, Member>()
    const members = this.#members.filter((member) => !member.left)
    for (let partition = 0; partition < this.#options.partitions; partition++) {
      const member = members[partition % members.length]
      if (member !== undefined) wanted.set(partition, member)
    }
    return wanted
  }

  /** As the cooperative protocol: who keeps a partition is not disturbed. */
  #balance(): void {
    const wanted = this.#wanted()
    for (const member of this.#members) {
      const given = [...member.owned].filter((partition) =>
        wanted.get(partition) !== member && !member.revoking.has(partition)
      )
      if (given.length > 0 && !member.left) this.#revoke(member, given)
    }
    const owned = new Set(this.#members.flatMap((member) => [...member.owned]))
    const fresh = new Map<Member, Array<number>>()
    for (const [partition, member] of wanted) {
      if (owned.has(partition)) continue
      fresh.set(member, [...fresh.get(member) ?? [], partition])
      member.owned.add(partition)
    }
    for (const [member, partitions] of fresh) this.#assign(member, partitions)
  }

  #assign(member: Member, partitions: ReadonlyArray<number>): void {
    const { dice, history, loop } = this.#options
    loop.after(dice.int(1, 20), () =>
      member.gate.pass(() => {
        const still = partitions.filter((partition) => member.owned.has(partition) && this.#members.includes(member))
        if (still.length === 0) return
        history.add(member.name, `is assigned ${still.join(", ")}`)
        member.run(member.handlers.assigned(this.#at(still)), () => {})
      }))
  }

  #revoke(member: Member, partitions: ReadonlyArray<number>): void {
    const { history, loop, sessionTimeoutMs } = this.#options
    for (const partition of partitions) member.revoking.add(partition)
    history.add(member.name, `has to give up ${partitions.join(", ")}`)
    const over = () => partitions.every((partition) => !member.revoking.has(partition))
    member.gate.pass(() =>
      member.run(member.handlers.revoked(this.#at(partitions)), () => {
        if (!this.#members.includes(member) || !this.#reachable(member)) return
        for (const partition of partitions) {
          member.revoking.delete(partition)
          member.owned.delete(partition)
        }
        this.#balance()
      })
    )
    loop.after(sessionTimeoutMs, () => {
      if (this.#members.includes(member) && !over()) this.#expire(member, "did not give up partitions in time")
    })
  }
}
