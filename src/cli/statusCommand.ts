/** `onceover status`: asks a running service and prints what it says. */
import { Effect, Schema } from "effect"
import { type FlowStatus, StatusDocument } from "../metrics/status.ts"
import { indented, table } from "./table.ts"

export class StatusError extends Schema.TaggedError<StatusError>()("StatusError", { what: Schema.String }) {
  override get message(): string {
    return this.what
  }
}

const TIMEOUT_MS = 10_000

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of that name",
  EHOSTUNREACH: "the host cannot be reached",
  TimeoutError: `no answer within ${TIMEOUT_MS / 1000} seconds`
}

const why = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error ? error.cause : error
  const code = "code" in cause ? String(cause.code) : cause.name
  return REASONS[code] ?? cause.message
}

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(StatusDocument))

/** Fetches and reads /status under `base`. */
export const fetchStatus = (
  base: URL
): Effect.Effect<{ readonly text: string; readonly status: StatusDocument }, StatusError> =>
  Effect.gen(function*() {
    const url = new URL("status", base.pathname.endsWith("/") ? base : new URL(`${base.href.replace(/[?#].*$/, "")}/`))
    const text = yield* Effect.tryPromise({
      try: async () => {
        const response = await fetch(url, {
          signal: AbortSignal.timeout(TIMEOUT_MS),
          headers: { accept: "application/json" }
        })
        if (!response.ok) throw new Error(`it answers ${response.status} ${response.statusText}`)
        return response.text()
      },
      catch: (error) =>
        new StatusError({ what: `cannot read ${url.href}: ${why(error)}; --url says where the service listens` })
    })
    const status = yield* decode(text).pipe(
      Effect.mapError(() => new StatusError({ what: `${url.href} is not the status of an onceover service` }))
    )
    return { text, status }
  })

const number = (n: number | null): string => n === null ? "?" : Math.round(n).toLocaleString("en-US")

/** A slow flow must not look like one that stands. */
const rate = (n: number): string => n > 0 && n < 10 ? String(Number(n.toPrecision(2))) : number(n)

const seconds = (n: number | null): string =>
  n === null ? "?" : n < 1 ? `${Math.max(1, Math.round(n * 1000))} ms` : `${n < 60 ? n.toFixed(1) : number(n)} s`

/** The sum of what is known; null when nothing is. */
const sum = (values: ReadonlyArray<number | null>): number | null => {
  const known = values.filter((value) => value !== null)
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0)
}

const partitions = (flow: FlowStatus): string =>
  flow.partitions.length === 0 ? "no partitions" : table(
    ["partition", "target topic", "position", "lag", "records/s", "latency", "state"],
    flow.partitions.map((p) => [
      `${p.topic}-${p.partition}`,
      p.targetTopic,
      number(p.position),
      number(p.lag),
      rate(p.rate),
      seconds(p.latencySeconds),
      p.reason === null ? p.state : `${p.state}: ${p.reason}`
    ]),
    new Set([2, 3, 4, 5])
  )

/** The whole flow in a line: the slowest of the partitions that move gives the latency. */
const movement = (flow: FlowStatus): string => {
  const latencies = flow.partitions.filter((p) => p.rate > 0).flatMap((p) => p.latencySeconds ?? [])
  const latency = latencies.length === 0 ? "" : `, latency ${seconds(Math.max(...latencies))}`
  return `${rate(sum(flow.partitions.map((p) => p.rate)) ?? 0)} records/s, lag ${
    number(sum(flow.partitions.map((p) => p.lag)))
  }${latency}`
}

/** What a reader must not miss: said only where there is any. */
const losses = ({ totals }: FlowStatus): ReadonlyArray<string> => {
  const all: ReadonlyArray<readonly [number, string]> = [
    [totals.recordsRepaired, "repaired"],
    [totals.recordsSkipped, "skipped on purpose"],
    [totals.deadLetters, "to the dead-letter topic"],
    [totals.sourceGapRecords, "gone from the source"]
  ]
  const some = all.filter(([n]) => n > 0).map(([n, what]) => `${number(n)} ${what}`)
  return some.length === 0 ? [] : [`records    ${some.join(", ")}`]
}

const flowText = (flow: FlowStatus): string => {
  const g = flow.guarantee
  const holds = g.effective === null
    ? `not known yet (wanted: ${g.wanted})`
    : g.effective === g.wanted
    ? g.effective
    : `${g.effective} (wanted: ${g.wanted})`
  const lines = [
    `state      ${flow.state}${flow.reason === null ? "" : `: ${flow.reason}`} (since ${flow.since})`,
    `guarantee  ${holds}${g.binding === null ? "" : `, binding ${g.binding}`}`,
    ...g.reasons.map((reason) => `           ${reason}`),
    `group      ${flow.mode}, ${flow.lanes} lanes`,
    `moving     ${movement(flow)}`,
    `mirrored   ${number(flow.totals.recordsMirrored)} records, ${number(flow.totals.bytesMirrored)} bytes`,
    `prevented  ${number(flow.totals.duplicatesPrevented)} duplicates; transactions: ${
      number(flow.totals.transactionsCommitted)
    } committed, ${number(flow.totals.transactionsAborted)} aborted, ${number(flow.totals.transactionsFenced)} fenced`,
    ...losses(flow),
    ...(flow.control ?? []).map((task) =>
      `control    ${task.task}: ${task.state}${task.reasons.length === 0 ? "" : `: ${task.reasons.join("; ")}`}`
    ),
    "",
    partitions(flow)
  ]
  return `${flow.name}  ${flow.source} -> ${flow.target}\n${indented(lines.join("\n"))}`
}

export const renderStatus = (status: StatusDocument): string => {
  const head = `${status.service.name} ${status.service.version}, up for ${number(status.uptimeSeconds)} s`
  return `${[head, ...status.flows.map(flowText)].join("\n\n")}\n`
}
