/**
 * The cluster at work: takes requests on connections, lets handlers answer them, wakes long polls, and runs what is
 * due. Knows no sockets and no clock of its own: time comes with every call.
 *
 * Guarantees:
 * 1. Requests of one connection are carried out in the order they were sent, one after the other: the next begins when
 *    the one before is answered, as in a broker.
 * 2. A request that was sent is carried out, whatever becomes of its client.
 * 3. Everything that happens at one time happens in one order, the same in every run.
 */
import { type Fault, Faults } from "./faults.ts"
import { makeHandlers } from "./handlers/all.ts"
import { type ConnectionInfo, type Handler, SILENT, Waiting } from "./handlers/handler.ts"
import { closeSessionsOfConnection } from "./model/shareSession.ts"
import { type ClusterState, type ModelOptions, newState } from "./model/state.ts"

/** What comes back: bytes of the answer's body, or that there will be none. */
export type Reply =
  | { readonly kind: "answer"; readonly body: ReadonlyArray<Buffer> }
  | { readonly kind: "closed"; readonly sent: boolean; readonly what: string }
  /** An API or version that is not offered. */
  | { readonly kind: "unsupported" }

export interface Sent {
  readonly apiKey: number
  readonly version: number
  readonly body: Buffer
  readonly reply: (reply: Reply) => void
}

interface Job extends Sent {
  done: boolean
}

/** A client's connection to one broker. Made by `Engine.connect`. */
export class EngineConnection {
  readonly info: ConnectionInfo
  readonly brokerId: number
  readonly client: string
  readonly purpose: string
  open = true
  /** When the last request arrived: what is sent later arrives later. */
  lastArrivalMs = 0
  busy = false
  /** What to do when the broker's side closes. */
  onClose: () => void = () => {}
  readonly queue: Array<() => void> = []
  readonly jobs = new Set<Job>()

  constructor(info: ConnectionInfo, brokerId: number, client: string, purpose: string) {
    this.info = info
    this.brokerId = brokerId
    this.client = client
    this.purpose = purpose
  }
}

interface Waiter {
  readonly connection: EngineConnection
  readonly waiting: Waiting<unknown>
  readonly finish: (response: unknown, nowMs: number) => void
  over: boolean
}

export class Engine {
  readonly state: ClusterState
  readonly faults = new Faults()
  readonly #handlers: ReadonlyMap<number, Handler>
  readonly #waiters = new Set<Waiter>()
  readonly #frozen = new Set<number>()
  readonly #connections = new Set<EngineConnection>()
  #connectionCount = 0
  #running = false
  /** A handler has run since the long polls looked last. */
  #changed = false
  /** Requests carried out, for tests. */
  handled = 0

  constructor(options: ModelOptions) {
    this.state = newState(options)
    this.#handlers = makeHandlers(options.kip1289)
  }

  /** Called from within an answer, in the middle of `advance`. */
  get isRunning(): boolean {
    return this.#running
  }

  get nextDueMs(): number {
    return this.state.timers.nextMs
  }

  get handlers(): Iterable<Handler> {
    return this.#handlers.values()
  }

  handlerOf(apiKey: number): Handler | undefined {
    return this.#handlers.get(apiKey)
  }

  // ---- connections

  /** null: the broker does not run. */
  connect(brokerId: number, client: string, purpose: string, clientId: string, host: string): EngineConnection | null {
    if (this.state.brokers.get(brokerId)?.running !== true) return null
    const id = `${client}-${++this.#connectionCount}`
    const connection = new EngineConnection({ id, clientId, host }, brokerId, client, purpose)
    this.#connections.add(connection)
    return connection
  }

  /** From either side: what is under way gets no answer, but is carried out; share sessions end. */
  close(connection: EngineConnection, what: string, nowMs: number): void {
    if (!connection.open) return
    connection.open = false
    this.#connections.delete(connection)
    for (const job of connection.jobs) this.#reply(connection, job, { kind: "closed", sent: true, what })
    for (const waiter of [...this.#waiters]) if (waiter.connection === connection) this.#abandon(waiter)
    closeSessionsOfConnection(this.state, connection.info.id)
    connection.onClose()
    this.advance(nowMs)
  }

  closeAll(which: (connection: EngineConnection) => boolean, what: string, nowMs: number): void {
    for (const connection of [...this.#connections]) if (which(connection)) this.close(connection, what, nowMs)
  }

  freeze(brokerId: number): void {
    this.#frozen.add(brokerId)
  }

  thaw(brokerId: number, nowMs: number): void {
    this.#frozen.delete(brokerId)
    for (const connection of [...this.#connections]) if (connection.brokerId === brokerId) this.#next(connection)
    this.advance(nowMs)
  }

  // ---- requests

  send(connection: EngineConnection, sent: Sent, nowMs: number): void {
    const handler = this.#handlers.get(sent.apiKey)
    const { max, min } = handler?.api.versions ?? { min: 0, max: -1 }
    if (handler === undefined || sent.version < min || sent.version > max) return sent.reply({ kind: "unsupported" })
    if (!connection.open) return sent.reply({ kind: "closed", sent: false, what: "the connection is closed" })
    const request: unknown = handler.api.request.decode(sent.version, sent.body, "ignore")
    const fault = this.faults.decide({
      client: connection.client,
      purpose: connection.purpose,
      brokerId: connection.brokerId,
      apiKey: sent.apiKey,
      apiName: handler.api.name,
      version: sent.version,
      request,
      nowMs
    })
    const job: Job = { ...sent, done: false }
    connection.jobs.add(job)
    this.#underFault(connection, job, handler, request, fault, nowMs)
    this.advance(nowMs)
  }

  #underFault(
    connection: EngineConnection,
    job: Job,
    handler: Handler,
    request: unknown,
    fault: Fault | null,
    nowMs: number
  ): void {
    const lost = (what: string) => this.#later(nowMs, (now) => this.close(connection, what, now))
    switch (fault?.kind) {
      case undefined:
        return this.#arrive(connection, job, handler, request, { requestMs: 0, answerMs: 0, answered: true }, nowMs)
      case "delay":
        return this.#arrive(connection, job, handler, request, { ...fault, answered: true }, nowMs)
      case "refuse":
        return this.#reply(connection, job, { kind: "closed", sent: false, what: "connection refused" })
      case "answer":
        return this.#encode(connection, job, handler, fault.response)
      case "loseRequest":
        return fault.then === "close" ? lost("the connection was lost") : undefined
      case "loseAnswer": {
        this.#arrive(connection, job, handler, request, { requestMs: 0, answerMs: 0, answered: false }, nowMs)
        return fault.then === "close" ? lost("the connection was lost") : undefined
      }
      case "late":
        this.#later(nowMs + fault.byMs, (now) => this.#carryOut(connection, handler, job, request, now, () => {}))
        return lost("the connection was lost")
      case "duplicate":
        this.#later(nowMs + fault.afterMs, (now) => this.#carryOut(connection, handler, job, request, now, () => {}))
        return this.#arrive(connection, job, handler, request, { requestMs: 0, answerMs: 0, answered: true }, nowMs)
    }
  }

  #later(atMs: number, run: (nowMs: number) => void): void {
    this.state.timers.set(atMs, run)
  }

  #arrive(
    connection: EngineConnection,
    job: Job,
    handler: Handler,
    request: unknown,
    way: { readonly requestMs: number; readonly answerMs: number; readonly answered: boolean },
    nowMs: number
  ): void {
    const arrivalMs = Math.max(nowMs + way.requestMs, connection.lastArrivalMs)
    connection.lastArrivalMs = arrivalMs
    this.#later(arrivalMs, (arrived) => {
      connection.queue.push(() => {
        connection.busy = true
        this.#carryOut(connection, handler, job, request, arrived, (response, now) => {
          const answer = () => {
            if (way.answered) this.#encode(connection, job, handler, response)
          }
          if (way.answerMs === 0) answer()
          else this.#later(now + way.answerMs, answer)
          connection.busy = false
          this.#next(connection)
        })
      })
      this.#next(connection)
    })
  }

  #next(connection: EngineConnection): void {
    if (connection.busy || this.#frozen.has(connection.brokerId)) return
    connection.queue.shift()?.()
  }

  /** Runs the handler, also for a connection that is gone. A broker that has stopped carries nothing out. */
  #carryOut(
    connection: EngineConnection,
    handler: Handler,
    job: Job,
    request: unknown,
    nowMs: number,
    finish: (response: unknown, nowMs: number) => void
  ): void {
    if (this.state.brokers.get(connection.brokerId)?.running !== true) return
    this.handled++
    this.#changed = true
    const call = {
      state: this.state,
      brokerId: connection.brokerId,
      version: job.version,
      request,
      connection: connection.info,
      nowMs
    }
    const result = handler.handle(call)
    if (!(result instanceof Waiting)) return finish(result, nowMs)
    const waiter: Waiter = { connection, waiting: result, finish, over: false }
    // Nobody waits for the answer: the poll has nobody to acquire for.
    if (!connection.open) return this.#abandon(waiter)
    this.#waiters.add(waiter)
    this.#later(result.untilMs, (now) => this.#attempt(waiter, now, true))
  }

  #abandon(waiter: Waiter): void {
    waiter.over = true
    this.#waiters.delete(waiter)
    waiter.connection.busy = false
    this.#later(0, () => this.#next(waiter.connection))
  }

  #attempt(waiter: Waiter, nowMs: number, last: boolean): void {
    if (waiter.over || this.#frozen.has(waiter.connection.brokerId) && !last) return
    const response = waiter.waiting.attempt(nowMs, last)
    if (response === null) return
    waiter.over = true
    this.#waiters.delete(waiter)
    waiter.finish(response, nowMs)
  }

  #encode(connection: EngineConnection, job: Job, handler: Handler, response: unknown): void {
    if (response === SILENT) {
      job.done = true
      connection.jobs.delete(job)
      return
    }
    this.#reply(connection, job, { kind: "answer", body: handler.api.response.encode(job.version, response as never) })
  }

  #reply(connection: EngineConnection, job: Job, reply: Reply): void {
    if (job.done) return
    job.done = true
    connection.jobs.delete(job)
    job.reply(reply)
  }

  // ---- time

  /** Runs what is due, and lets long polls look again. Call it after changing the state by hand. */
  advance(nowMs: number): void {
    if (this.#running) return
    this.#running = true
    try {
      do {
        this.#changed = false
        this.state.timers.runDue(nowMs)
        for (const waiter of [...this.#waiters]) this.#attempt(waiter, nowMs, false)
      } while (this.#changed || this.state.timers.nextMs <= nowMs)
    } finally {
      this.#running = false
    }
  }
}
