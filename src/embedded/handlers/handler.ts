/**
 * What a handler is: a function from the cluster's state and one request to its answer, or to a wait for it.
 *
 * The pairs of codec and handler are kept without their types here: `handler` is where they are checked.
 */
import type { Api, Decoded, Encoded } from "../../wire/schema.ts"
import type { ClusterState } from "../model/state.ts"

export interface ConnectionInfo {
  readonly id: string
  readonly clientId: string
  readonly host: string
}

export interface Call<Req> {
  readonly state: ClusterState
  /** The broker that was asked. */
  readonly brokerId: number
  readonly version: number
  readonly request: Req
  readonly connection: ConnectionInfo
  readonly nowMs: number
}

/** A long poll: tried again whenever something has changed, and for the last time at `untilMs`. */
export class Waiting<Res> {
  readonly untilMs: number
  readonly attempt: (nowMs: number, last: boolean) => Res | null
  constructor(untilMs: number, attempt: (nowMs: number, last: boolean) => Res | null) {
    this.untilMs = untilMs
    this.attempt = attempt
  }
}

/** Answers at once where `attempt` can, and waits otherwise. */
export const answerOrWait = <Res>(
  nowMs: number,
  waitMs: number,
  attempt: (nowMs: number, last: boolean) => Res | null
): Res | Waiting<Res> => attempt(nowMs, waitMs <= 0) ?? new Waiting(nowMs + waitMs, attempt)

/** A produce request with acks=0 is not answered. */
export const SILENT = Symbol("not answered")

export interface Handler {
  readonly api: Api<object, object>
  readonly handle: (call: Call<unknown>) => unknown
}

export const handler = <Req extends object, Res extends object>(
  api: Api<Req, Res>,
  handle: (call: Call<Decoded<Req>>) => Encoded<Res> | Waiting<Encoded<Res>> | typeof SILENT
): Handler => ({ api: api as unknown as Handler["api"], handle: handle as unknown as Handler["handle"] })
