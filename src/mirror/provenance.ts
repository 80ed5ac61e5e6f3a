/**
 * Which clusters a record came through, kept in a header where names cannot tell: topics that have the same name on
 * both sides (replication.policy identity, or mapped to their own name), and such as come back under another
 * (returning.ts). A record that came through the target is not
 * sent there again, so a pair that mirrors both ways, or a ring, stands still.
 *
 * The header `onceover-provenance` holds cluster ids, oldest first, separated by commas; one header a record. The price
 * is that batches of such topics are decoded.
 */
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import { returns } from "./returning.ts"
import type { TransformChain } from "./transforms/chain.ts"
import type { Header, MirrorRecord, TransformOutcome } from "./transforms/transform.ts"

export const PROVENANCE_HEADER = "onceover-provenance"
const KEY = Buffer.from(PROVENANCE_HEADER)
const SEPARATOR = ","

const isOurs = (header: Header): boolean => header.key.equals(KEY)

/** Ids of the clusters that the record came through before it was on the source, oldest first. */
export const cameThrough = (headers: ReadonlyArray<Header>): ReadonlyArray<string> =>
  headers.filter(isOurs).flatMap(({ value }) => value === null ? [] : value.toString("latin1").split(SEPARATOR))
    .filter((id) => id !== "")

const marked = (record: MirrorRecord, sourceId: string): MirrorRecord => {
  const path = [...cameThrough(record.headers), sourceId]
  const header = { key: KEY, value: Buffer.from(path.join(SEPARATOR), "latin1") }
  return { ...record, headers: [...record.headers.filter((one) => !isOurs(one)), header] }
}

export interface Ends {
  /** Cluster ids. */
  readonly sourceId: string
  readonly targetId: string
}

const DROP: TransformOutcome = { kind: "drop" }

/** The chain with the check before it and the mark behind it. Never throws, as the chain. */
export const withProvenance = (
  chain: TransformChain | null,
  { sourceId, targetId }: Ends,
  onLoop: () => void
): TransformChain => {
  const mark = (outcome: TransformOutcome): TransformOutcome =>
    outcome.kind === "keep" ? { kind: "keep", record: marked(outcome.record, sourceId) } : outcome
  return {
    names: chain?.names ?? [],
    apply: (record) => {
      if (cameThrough(record.headers).includes(targetId)) {
        onLoop()
        return DROP
      }
      if (chain === null) return { kind: "keep", record: marked(record, sourceId) }
      const outcome = chain.apply(record)
      return outcome instanceof Promise ? outcome.then(mark) : mark(outcome)
    }
  }
}

/** Whether the names of a topic cannot tell where its records are from. */
export const needsProvenance = (
  config: ResolvedConfig,
  flow: ResolvedFlow,
  { sourceId, targetId }: Ends,
  topic: string
): boolean =>
  flow.control.provenance && sourceId !== targetId &&
  (flow.replicationPolicy === "identity" || flow.topicMapping.get(topic) === topic || returns(config, flow, topic))
