/** Documents as /status and /history give them, for tests of what shows them: a service with every kind of trouble. */
import { type FlowHistory, type HistoryDocument, MAX_POINTS, STEP_SECONDS } from "../../src/metrics/history.ts"
import type { StatusInput } from "../../src/metrics/status.ts"

export type Flow = StatusInput["flows"][number]
export type Partition = Flow["partitions"][number]

export const NOTHING: Flow["totals"] = {
  recordsMirrored: 0,
  bytesMirrored: 0,
  recordsAcquired: 0,
  recordsAcknowledged: 0,
  recordsReleased: 0,
  recordsRejected: 0,
  recordsRedelivered: 0,
  recordsRepaired: 0,
  recordsSkipped: 0,
  duplicatesPrevented: 0,
  transactionsCommitted: 0,
  transactionsAborted: 0,
  transactionsFenced: 0,
  deadLetters: 0,
  sourceGapRecords: 0
}

export const partition = (topic: string, n: number, more: Partial<Partition> = {}): Partition => ({
  topic,
  partition: n,
  targetTopic: `east.${topic}`,
  position: 1_000,
  lag: 0,
  rate: 0,
  latencySeconds: 0.1,
  state: "running",
  reason: null,
  ...more
})

export const flow = (name: string, more: Partial<Flow> = {}): Flow => ({
  name,
  source: "east",
  target: "west",
  mode: "share",
  guarantee: { wanted: "exactly-once", effective: "exactly-once", binding: "ledger", reasons: [] },
  state: "running",
  reason: null,
  since: "2026-01-01T00:00:00.000Z",
  lanes: 2,
  totals: NOTHING,
  partitions: [partition("orders", 0)],
  ...more
})

export const status = (...flows: ReadonlyArray<Flow>): StatusInput => ({
  service: { name: "onceover", version: "9.9.9" },
  startedAt: "2026-01-01T00:00:00.000Z",
  uptimeSeconds: 4_000,
  flows
})

/** Milliseconds of the moment that `status` tells of. */
export const NOW_MS = Date.parse("2026-01-01T00:00:00.000Z") + 4_000_000

export const NO_HISTORY: HistoryDocument = { stepSeconds: STEP_SECONDS, times: [], flows: [] }

/** Full 15 minutes; `at` gives records a second and lag by the number of the point. */
export const history = (
  flows: Readonly<Record<string, (n: number) => readonly [rate: number | null, lag: number | null]>>
): HistoryDocument => {
  const points = Array.from({ length: MAX_POINTS }, (_, n) => n)
  const columns = Object.entries(flows).map(([name, at]): FlowHistory => ({
    name,
    recordsPerSecond: points.map((n) => at(n)[0]),
    bytesPerSecond: points.map((n) => (at(n)[0] ?? 0) * 412),
    lag: points.map((n) => at(n)[1])
  }))
  const times = points.map((n) => NOW_MS - (MAX_POINTS - 1 - n) * STEP_SECONDS * 1000)
  return { stepSeconds: STEP_SECONDS, times, flows: columns }
}

const wave = (n: number, mean: number): number =>
  Math.round(mean * (1 + 0.15 * Math.sin(n / 9) + 0.08 * Math.sin(n * 1.7)))

const busy = flow("orders to west", {
  lanes: 4,
  totals: {
    ...NOTHING,
    recordsMirrored: 1_904_221_310,
    bytesMirrored: 784_539_179_720,
    recordsAcquired: 1_904_310_555,
    recordsAcknowledged: 1_904_208_001,
    recordsRedelivered: 12_204,
    recordsRepaired: 3,
    duplicatesPrevented: 12_180,
    transactionsCommitted: 488_213,
    transactionsAborted: 17
  },
  partitions: [
    ...Array.from({ length: 12 }, (_, n) =>
      partition("orders", n, {
        position: 158_685_109 + n * 7_411,
        lag: (n * 37) % 211,
        rate: wave(n * 5, 3_100),
        latencySeconds: 0.021 + n / 400
      })),
    ...Array.from(
      { length: 24 },
      (_, n) =>
        partition("payments.settled", n, { position: 4_090 + n, rate: n % 5 === 0 ? 1.5 : 0, latencySeconds: 0.3 })
    )
  ]
})

const blocked = flow("audit to west", {
  mode: "consumer",
  guarantee: {
    wanted: "exactly-once",
    effective: "at-least-once",
    binding: "at-least-once",
    reasons: [
      "ledger: the principal User:mirror may not write the transactional id onceover-audit (TRANSACTIONAL_ID_AUTHORIZATION_FAILED)"
    ]
  },
  state: "blocked",
  reason: "audit-1: offset 8,812: the target refuses it",
  since: "2026-01-01T00:55:00.000Z",
  control: [
    { task: "settings", state: "ok", reasons: [], at: "2026-01-01T01:06:00.000Z" },
    {
      task: "acls",
      state: "problem",
      reasons: ["User:audit may not be given READ on east.audit: the target has no authorizer"],
      at: "2026-01-01T01:06:00.000Z"
    }
  ],
  totals: { ...NOTHING, recordsMirrored: 90_112, bytesMirrored: 41_220_000, deadLetters: 2, sourceGapRecords: 40 },
  partitions: [
    partition("audit", 0, { position: 45_001, rate: 12.4, latencySeconds: 1.31 }),
    partition("audit", 1, {
      position: 8_812,
      lag: 36_209,
      latencySeconds: 902,
      state: "blocked",
      reason: "offset 8,812: the target refuses it: MESSAGE_TOO_LARGE, 1,048,900 bytes; east.audit takes 1,048,588"
    }),
    partition("audit", 2, { position: null, lag: null, latencySeconds: null })
  ]
})

const retrying = flow("clicks to west", {
  guarantee: { wanted: "exactly-once", effective: null, binding: null, reasons: [] },
  state: "retrying",
  reason: "cannot connect to \"west\": none of its bootstrap servers answers: west-1:9092 (connection refused)",
  since: "2026-01-01T01:06:00.000Z",
  partitions: []
})

/** One flow that is well, one that is blocked under a lesser guarantee, one that cannot start. */
export const TROUBLED: StatusInput = status(busy, blocked, retrying)

export const TROUBLED_HISTORY: HistoryDocument = history({
  "orders to west": (n) =>
    n > 70 && n < 76 ? [null, null] : [wave(n, 37_200), n > 100 && n < 130 ? (130 - n) * 9_000 : wave(n, 900)],
  "audit to west": (n) => [n < 120 ? 14 : 12.4, n < 120 ? 3 : (n - 120) * 610]
})

export const HEALTHY: StatusInput = status(busy)
