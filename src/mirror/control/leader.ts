/**
 * Which of the processes that run a flow does its control tasks: the leader of a small consumer group on the target
 * (classic protocol, no topics), as Kafka Connect and the schema registries elect theirs.
 *
 * Guarantees
 * 1. At most one process leads at a time, as long as clocks run at the same speed: a leader counts its lease from the
 *    moment it SENT what the coordinator confirmed, and ends it before the coordinator's own timer can (the
 *    coordinator counts from when it received it, and waits for a silent member as long at every rebalance).
 * 2. A leader that ends lets go at once; one that dies is replaced within the session timeout.
 *
 * Gotchas
 * - A request that was sent while this process led may arrive later: a control task must be harmless when an older
 *   one of another leader comes behind it (each reads what is there and writes only what differs).
 * - Where the group may not be read (no right), every process leads, and says so: control tasks bear that, they only
 *   cost more.
 */
import { Effect, Option, type Scope } from "effect"
import { Signal } from "../../txn/ledger/signal.ts"
import type { Cluster, Destination } from "../../wire/cluster.ts"
import { BrokerError, type WireError } from "../../wire/errors.ts"
import { heartbeat } from "../../wire/messages/heartbeat.ts"
import { joinGroup } from "../../wire/messages/joinGroup.ts"
import { leaveGroup } from "../../wire/messages/leaveGroup.ts"
import { syncGroup } from "../../wire/messages/syncGroup.ts"
import { nowMs } from "../../wire/retry.ts"
import type { Log } from "../report.ts"

export interface Leadership {
  /** Whether this process leads now. For /status; what may only be done by the leader goes through `whileLeading`. */
  readonly leads: () => boolean
  /**
   * Runs `work` while this process leads: begins when it does, interrupts it when it no longer does, and begins again
   * when it leads anew. Ends as `work` ends.
   */
  readonly whileLeading: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export interface LeadershipOptions {
  /** Where the group is: the flow's target. */
  readonly cluster: Cluster
  readonly flow: string
  readonly log: Log
  /** The least that brokers allow by default; asked for longer where they want more. */
  readonly sessionTimeoutMs?: number
}

/** Also excluded from what is synced: it is nobody's but ours. */
export const leaderGroupId = (flow: string): string => `__onceover_control_${flow}`

const SESSION_TIMEOUT_MS = 6_000
const MAX_SESSION_TIMEOUT_MS = 300_000
const PROTOCOL_TYPE = "onceover"
const PROTOCOL = "control"
/** Of the session timeout: how often the coordinator hears from us, and how long before its end the lease ends. */
const HEARTBEAT_SHARE = 1 / 4
const MARGIN_SHARE = 1 / 6
const RETRY_MS = 500
/** Where there is no right: how soon it is tried again. */
const ALONE_MS = 30_000
const LEAVE_MS = 2_000
/** A JoinGroup is answered when all members have joined, at the latest after the rebalance timeout. */
const JOIN_SLACK_MS = 5_000

const NONE = 0
const ILLEGAL_GENERATION = 22
const UNKNOWN_MEMBER_ID = 25
const INVALID_SESSION_TIMEOUT = 26
const REBALANCE_IN_PROGRESS = 27
const MEMBER_ID_REQUIRED = 79

type Next = "heartbeat" | "join" | "wait" | "alone"

class Member {
  readonly #options: LeadershipOptions
  readonly #to: Destination
  readonly #groupId: string
  readonly #purpose: string
  readonly #changed = new Signal()
  #sessionMs: number
  #memberId = ""
  #generation = -1
  #leads = false
  #alone = false
  /** Monotonic; the lease of this leader. */
  #until = 0
  #said = ""

  constructor(options: LeadershipOptions) {
    this.#options = options
    this.#groupId = leaderGroupId(options.flow)
    this.#to = { kind: "group", key: this.#groupId }
    this.#purpose = `control-${options.flow}`
    this.#sessionMs = options.sessionTimeoutMs ?? SESSION_TIMEOUT_MS
  }

  readonly leads = (): boolean => this.#leads

  readonly whileLeading = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen({ self: this }, function*() {
      while (true) {
        yield* this.#await(true)
        const ended = yield* Effect.raceFirst(
          Effect.map(work, Option.some),
          Effect.as(this.#await(false), Option.none<A>())
        )
        if (Option.isSome(ended)) return ended.value
      }
    })

  #await(leads: boolean): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      while (true) {
        const { next } = this.#changed
        if (this.#leads === leads) return
        yield* next
      }
    })
  }

  #become(leads: boolean): void {
    if (this.#leads === leads) return
    this.#leads = leads
    this.#options.log("info", leads ? "this process does the control tasks" : "leaves the control tasks to others")
    this.#changed.notify()
  }

  #lose(): void {
    this.#until = 0
    this.#become(false)
  }

  /** The coordinator has confirmed what was sent at `sentAt`. */
  #confirmed(sentAt: number): void {
    this.#until = sentAt + this.#sessionMs * (1 - MARGIN_SHARE)
  }

  /** Ends a lease that nobody has renewed. */
  get watch(): Effect.Effect<never> {
    return Effect.gen({ self: this }, function*() {
      while (true) {
        const { next } = this.#changed
        if (!this.#leads || this.#alone) {
          yield* next
          continue
        }
        const left = this.#until - (yield* nowMs)
        if (left <= 0) this.#lose()
        else yield* Effect.sleep(Math.ceil(left))
      }
    })
  }

  get run(): Effect.Effect<never> {
    return Effect.gen({ self: this }, function*() {
      let next: Next = "join"
      while (true) {
        if (next === "wait") yield* Effect.sleep(RETRY_MS)
        else if (next === "alone") yield* Effect.sleep(ALONE_MS)
        else if (next === "heartbeat") yield* Effect.sleep(this.#sessionMs * HEARTBEAT_SHARE)
        const step: Effect.Effect<Next, WireError> = next === "heartbeat" ? this.#heartbeat : this.#join
        next = yield* Effect.catch(step, (error) => this.#failed(error))
      }
    })
  }

  get #join(): Effect.Effect<Next, WireError> {
    return Effect.gen({ self: this }, function*() {
      const { cluster } = this.#options
      const answer = yield* cluster.request(this.#to, joinGroup, {
        groupId: this.#groupId,
        sessionTimeoutMs: this.#sessionMs,
        rebalanceTimeoutMs: this.#sessionMs,
        memberId: this.#memberId,
        protocolType: PROTOCOL_TYPE,
        protocols: [{ name: PROTOCOL, metadata: Buffer.alloc(0) }]
      }, { purpose: this.#purpose, timeoutMs: this.#sessionMs + JOIN_SLACK_MS })
      if (answer.errorCode === MEMBER_ID_REQUIRED) {
        this.#memberId = answer.memberId
        return "join"
      }
      if (answer.errorCode !== NONE) return yield* this.#refused("JoinGroup", answer.errorCode)
      this.#memberId = answer.memberId
      this.#generation = answer.generationId
      const leads = answer.leader === answer.memberId
      if (!leads) this.#lose()
      return yield* this.#sync(leads, answer.members.map(({ memberId }) => memberId))
    })
  }

  /** There is nothing to assign; the coordinator wants it all the same, and with it the generation is complete. */
  #sync(leads: boolean, members: ReadonlyArray<string>): Effect.Effect<Next, WireError> {
    return Effect.gen({ self: this }, function*() {
      const sentAt = yield* nowMs
      const answer = yield* this.#options.cluster.request(this.#to, syncGroup, {
        groupId: this.#groupId,
        generationId: this.#generation,
        memberId: this.#memberId,
        protocolType: PROTOCOL_TYPE,
        protocolName: PROTOCOL,
        assignments: leads ? members.map((memberId) => ({ memberId, assignment: Buffer.alloc(0) })) : []
      }, { purpose: this.#purpose, timeoutMs: this.#sessionMs + JOIN_SLACK_MS })
      if (answer.errorCode !== NONE) return yield* this.#refused("SyncGroup", answer.errorCode)
      this.#alone = false
      this.#said = ""
      this.#confirmed(sentAt)
      this.#become(leads)
      return "heartbeat"
    })
  }

  get #heartbeat(): Effect.Effect<Next, WireError> {
    return Effect.gen({ self: this }, function*() {
      const sentAt = yield* nowMs
      const answer = yield* this.#options.cluster.request(this.#to, heartbeat, {
        groupId: this.#groupId,
        generationId: this.#generation,
        memberId: this.#memberId
      }, { purpose: this.#purpose, timeoutMs: this.#sessionMs })
      if (answer.errorCode !== NONE) return yield* this.#refused("Heartbeat", answer.errorCode)
      this.#confirmed(sentAt)
      return "heartbeat"
    })
  }

  #refused(api: string, code: number): Effect.Effect<Next, WireError> {
    switch (code) {
      // A leader goes on within its lease: nobody else can lead before it has joined, or is given up.
      case REBALANCE_IN_PROGRESS:
        return Effect.succeed("join")
      case UNKNOWN_MEMBER_ID:
        this.#memberId = ""
        this.#lose()
        return Effect.succeed("join")
      case ILLEGAL_GENERATION:
        this.#lose()
        return Effect.succeed("join")
      case INVALID_SESSION_TIMEOUT:
        if (this.#sessionMs < MAX_SESSION_TIMEOUT_MS) {
          this.#sessionMs = Math.min(2 * this.#sessionMs, MAX_SESSION_TIMEOUT_MS)
          return Effect.succeed("join")
        }
    }
    return Effect.fail(new BrokerError({ api, code, subject: `group ${this.#groupId}`, detail: null }))
  }

  /** What passes is tried again, within the lease or without; what does not lets every process do the tasks. */
  #failed(error: WireError): Effect.Effect<Next> {
    return Effect.gen({ self: this }, function*() {
      yield* this.#options.cluster.invalidateCoordinator(this.#to)
      const lasts = error._tag === "UnsupportedError" || error._tag === "ProtocolError" ||
        (error._tag === "BrokerError" && (error.class === "authorization" || error.class === "fatal"))
      if (!lasts) return this.#alone ? "alone" : "wait"
      if (this.#said !== error.message) {
        this.#said = error.message
        this.#options.log(
          "warn",
          `which process does the control tasks cannot be agreed on, so each does them: ${error.message}`
        )
      }
      this.#alone = true
      this.#become(true)
      return "alone"
    })
  }

  /** A mistake of ours in `work`: this process lets go, says so, and begins again, or nobody would do the tasks. */
  lasting(work: Effect.Effect<never>): Effect.Effect<never> {
    return work.pipe(
      Effect.catchDefect((defect) => {
        this.#lose()
        const what = defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)
        this.#options.log("error", `which process does the control tasks: ${what}`)
        return Effect.sleep(ALONE_MS)
      }),
      Effect.forever
    )
  }

  get leave(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const { cluster } = this.#options
      this.#lose()
      if (this.#memberId !== "") {
        const memberId = this.#memberId
        const left = cluster.request(
          this.#to,
          leaveGroup,
          (version) => ({ groupId: this.#groupId, ...(version < 3 ? { memberId } : { members: [{ memberId }] }) }),
          { purpose: this.#purpose, timeoutMs: LEAVE_MS }
        )
        yield* Effect.ignore(left)
      }
      yield* cluster.release(this.#purpose)
    })
  }
}

/** Joins, and stays a member until the scope ends. Never fails: what is in the way is said and tried again. */
export const makeLeadership = (options: LeadershipOptions): Effect.Effect<Leadership, never, Scope.Scope> =>
  Effect.gen(function*() {
    const member = new Member(options)
    yield* Effect.addFinalizer(() => member.leave)
    yield* Effect.forkScoped(member.lasting(member.run))
    yield* Effect.forkScoped(member.lasting(member.watch))
    return { leads: member.leads, whileLeading: member.whileLeading }
  })

/** For what runs alone: a command, a test. */
export const ALWAYS_LEADS: Leadership = { leads: () => true, whileLeading: (work) => work }
