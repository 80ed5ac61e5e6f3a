/**
 * Every instrument by name: what it is, its labels, and in which mode it exists. The reference in docs is made from
 * this table, and so are the tests that a mode has what it should have and nothing else.
 *
 * Names end in _total for counters and in the unit otherwise; times are in seconds. The label `topic` is the
 * target's name of a topic, as in MirrorMaker 2.
 */

export type Mode = "share" | "consumer"
export interface Instrument {
  readonly kind: "counter" | "gauge" | "histogram"
  readonly help: string
  /** Beside `flow`. */
  readonly labels: ReadonlyArray<string>
  /** null: both. */
  readonly only: Mode | null
}

const counter = (help: string, labels: ReadonlyArray<string> = [], only: Mode | null = null): Instrument => ({
  kind: "counter",
  help,
  labels,
  only
})
const gauge = (help: string, labels: ReadonlyArray<string> = [], only: Mode | null = null): Instrument => ({
  kind: "gauge",
  help,
  labels,
  only
})
const histogram = (help: string, labels: ReadonlyArray<string> = [], only: Mode | null = null): Instrument => ({
  kind: "histogram",
  help,
  labels,
  only
})

const PARTITION = ["topic", "partition"]

export const INSTRUMENTS = {
  onceover_records_acquired_total: counter("Records taken from the share group.", [], "share"),
  onceover_records_acknowledged_total: counter("Records whose ACCEPT the source has confirmed.", [], "share"),
  onceover_records_released_total: counter(
    "Records whose RELEASE the source has confirmed: given back for another delivery.",
    [],
    "share"
  ),
  onceover_records_rejected_total: counter(
    "Records whose REJECT the source has confirmed: never delivered again.",
    [],
    "share"
  ),
  onceover_records_redelivered_total: counter("Records acquired with a delivery count above one.", [], "share"),
  onceover_records_repaired_total: counter(
    "Records that the share group gave up on and that were mirrored all the same.",
    [],
    "share"
  ),
  onceover_acknowledgements_refused_total: counter(
    "Records whose acknowledgement the source has refused; they are delivered again.",
    [],
    "share"
  ),
  onceover_acknowledge_seconds: histogram(
    "Time from acquiring records to the confirmed acknowledgement, one observation a record.",
    [],
    "share"
  ),
  onceover_records_mirrored_total: counter("Records confirmed by the target.", PARTITION),
  onceover_bytes_mirrored_total: counter(
    "Bytes of the batches confirmed by the target, as stored (compressed).",
    PARTITION
  ),
  onceover_replication_latency_seconds: histogram("Time from a record's timestamp to its confirmation by the target.", [
    "topic"
  ]),
  onceover_record_age_seconds: histogram("Age of a record, by its timestamp, when it was read.", ["topic"]),
  onceover_lag_records: gauge("Source end offset minus what is mirrored and acknowledged.", PARTITION),
  onceover_transactions_total: counter("Transactions on the target by outcome.", ["outcome"]),
  onceover_duplicates_prevented_total: counter("Deliveries skipped because their output was committed already."),
  onceover_records_skipped_total: counter(
    "Records left out on purpose, by reason: a filter dropped them, or errors.tolerance let them go.",
    ["reason"]
  ),
  onceover_dead_letters_total: counter("Records sent to the dead-letter topic."),
  onceover_source_gap_records_total: counter(
    "Records that were gone from the source before they could be mirrored; where it cannot be told exactly, the most."
  ),
  onceover_loops_prevented_total: counter(
    "Records that were not sent to a cluster that they came through (provenance.header.enabled)."
  ),
  onceover_control_changes_total: counter("Changes on the target by a control task: settings, acls, deletes.", [
    "task"
  ]),
  onceover_control_problems: gauge("What a control task could not do at its last pass; /status says what.", ["task"]),
  onceover_group_partitions: gauge(
    "Partitions of a group of the source by the state of its offsets on the target: synced, behind (not written: switched off), active (it has members there), unmapped, failed. In the process that leads.",
    ["group", "state"]
  ),
  onceover_group_behind_records: gauge(
    "Records that a group would read again if it were started on the target now: from what it has there to what its position on the source is translated to. Partitions where it has nothing there do not count.",
    ["group"]
  ),
  onceover_blocked_partitions: gauge("Partitions that wait because the target refuses a record."),
  onceover_flow_running: gauge("1 while the flow runs, 0 otherwise; /status says why."),
  onceover_guarantee: gauge("1 for the guarantee that holds now.", ["wanted", "effective", "binding"]),
  onceover_partition_count: gauge("Partitions assigned to this process.", [], "consumer"),
  onceover_offset_commit_seconds: histogram("Time of one commit of positions on the source.", [], "consumer")
} as const satisfies Readonly<Record<string, Instrument>>

export type InstrumentName = keyof typeof INSTRUMENTS

export const OUTCOMES = ["committed", "aborted", "fenced"] as const
export const SKIP_REASONS = ["filtered", "error"] as const
