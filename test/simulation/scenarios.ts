/**
 * Faults by script, for interleavings that chance hardly ever makes: the same lanes, clusters and checker, another
 * source of trouble. Each is harmless to the rules as they are, and deadly to one known-wrong variation of them.
 */
import { appendBatch, appendMarker } from "../../src/embedded/model/partitionLog.ts"
import { splitBatches } from "../../src/wire/batch/recordBatch.ts"
import { rewriteForProduce } from "../../src/wire/batch/rewrite.ts"
import { ledgerBatches } from "../../src/txn/ledger/batches.ts"
import { ledgerTopicName } from "../../src/txn/ledger/ledgerTopic.ts"
import type { Fault, Passing } from "../../src/embedded/faults.ts"
import { endTxn } from "../../src/wire/messages/endTxn.ts"
import { fetch } from "../../src/wire/messages/fetch.ts"
import { produce } from "../../src/wire/messages/produce.ts"
import { crashFor } from "./faults.ts"
import type { World } from "./simulation.ts"
import { FLOW, TARGET_TOPIC, TOPIC } from "./worker.ts"

const LEDGER = ledgerTopicName(FLOW)

type Written = ReadonlyArray<{
  readonly name: string
  readonly topicId: string
  readonly partitionData: ReadonlyArray<{ readonly index: number }>
}>

/** The partitions of a topic that a request writes to. */
const writesTo = (world: World, passing: Passing, topic: string): ReadonlyArray<number> => {
  if (passing.apiKey !== produce.key) return []
  const { topicData } = passing.request as { readonly topicData: Written }
  const id = world.target.state.topics.get(topic)?.id
  const found = topicData.filter((written) =>
    written.name === topic || (written.topicId !== "" && written.topicId === id)
  )
  return found.flatMap((written) => written.partitionData.map(({ index }) => index))
}
const isEntry = (world: World, passing: Passing): boolean =>
  writesTo(world, passing, LEDGER).length > 0 && passing.purpose.startsWith("ledger-produce")
const isOutput = (world: World, passing: Passing): boolean => writesTo(world, passing, TARGET_TOPIC).length > 0

/** Sees every request to the target, for as long as the run is. */
const onTarget = (world: World, see: (passing: Passing) => Fault | null): void => {
  const { faults } = world.target.driver.engine
  const decide = faults.decide.bind(faults)
  faults.decide = (passing) => see(passing) ?? decide(passing)
}

/** The log that an entry is for. */
const logOf = (world: World, passing: Passing) => world.target.log(LEDGER, writesTo(world, passing, LEDGER)[0] ?? 0)

const GHOST_MS = 600

/**
 * Just before each entry of a lane somebody else's entry over the same records, whose transaction is aborted a moment
 * later. Who waits for the outcome commits; who aborts on it and tries again (W10) meets the next one, for ever.
 */
export const ghosts = (world: World): void => {
  const { loop, plan, source, target } = world
  let producerId = 900_000
  onTarget(world, (passing) => {
    if (!isEntry(world, passing)) return null
    const topicId = source.state.topics.get(TOPIC)?.id ?? ""
    const version = plan.transactionVersion
    const slots = Array.from(
      { length: plan.partitions },
      (_, partition) => ({ clusterId: source.state.clusterId, topicId, partition })
    )
    const [batch] = ledgerBatches(slots.map((slot) => ({
      kind: "done" as const,
      slot,
      ranges: [{ first: 0, last: 1_000_000 }],
      transactionalId: "ghost",
      transactionVersion: version,
      targets: []
    })))
    const bytes = batch?.bytes ?? Buffer.alloc(0)
    const id = producerId++
    rewriteForProduce(splitBatches(bytes)[0]!, {
      producerId: id,
      producerEpoch: 0,
      baseSequence: 0,
      transactional: true
    })
    const log = logOf(world, passing)
    const options = { leaderEpoch: 0, nowMs: loop.nowMs, logAppendTime: false }
    appendBatch(log, bytes, options)
    const marker = { producerId: id, epoch: version === 2 ? 1 : 0, committed: false, transactionVersion: version }
    loop.after(GHOST_MS, () => {
      appendMarker(log, marker, { ...options, nowMs: loop.nowMs })
      target.wake()
    })
    return null
  })
}

const STALE_MARKERS = 4

/**
 * A late duplicate of the marker before, sent by a coordinator of the old kind, comes behind an entry whose worker is
 * killed before it can commit. Who takes it for the outcome (W5) accepts what nobody has mirrored.
 */
export const staleMarkers = (world: World): void => {
  const { history, loop, plan, target, workers } = world
  let left = STALE_MARKERS
  onTarget(world, (passing) => {
    const worker = workers.find(({ client }) => client === passing.client)
    if (left === 0 || worker === undefined || !isEntry(world, passing)) return null
    left--
    const log = logOf(world, passing)
    const before = log.batches.length
    loop.after(2 * plan.requests.latencyMs, () => {
      const entry = log.batches.slice(before).find(({ view }) => view.isTransactional && !view.isControl)
      crashFor(world, worker, 20)
      if (entry === undefined) return
      const { producerEpoch, producerId } = entry.view
      const marker = { producerId, epoch: producerEpoch, committed: true, transactionVersion: 1 as const }
      history.add("world", `a late duplicate of the marker before, behind the entry at ${entry.base}`)
      appendMarker(log, marker, { leaderEpoch: 0, nowMs: loop.nowMs, logAppendTime: false })
      target.wake()
    })
    // EndTxn of this transaction never comes: the worker is dead by then.
    return { kind: "delay", requestMs: 1, answerMs: 4 * plan.requests.latencyMs }
  })
}

const SLOW_COMMIT_MS = 400

/**
 * Who writes its entry loses its locks at once, and its commit takes a while: the others always have the records that
 * it is about to commit. With patience the commit comes; who fences at once (W12) is fenced in its turn, for ever.
 */
export const thieves = (world: World): void => {
  const { loop, plan, source, workers } = world
  onTarget(world, (passing) => {
    if (!workers.some(({ client }) => client === passing.client)) return null
    if (isEntry(world, passing)) loop.after(2 * plan.requests.latencyMs, () => source.disconnect(passing.client))
    return passing.apiKey === endTxn.key ? { kind: "delay", requestMs: SLOW_COMMIT_MS, answerMs: 1 } : null
  })
}

const TURN_MS = 2_000

/**
 * Who has written its outputs loses its locks: another one takes the same records for its own to mirror. Entries come
 * into the ledger all at one time of each turn, and are read all at another, so that each lane sees its own entry
 * and the other one's at once, both undecided. The later one must wait for the earlier (W1, W2, W8: it commits as
 * well), and the earlier must not wait for the later (W11: neither goes on).
 */
export const bothAtOnce = (world: World): void => {
  const { loop, plan, source, workers } = world
  const until = (phaseMs: number): Fault => ({
    kind: "delay",
    requestMs: (phaseMs - loop.nowMs % TURN_MS + TURN_MS) % TURN_MS,
    answerMs: 1
  })
  onTarget(world, (passing) => {
    if (!workers.some(({ client }) => client === passing.client)) return null
    if (isOutput(world, passing)) loop.after(plan.requests.latencyMs, () => source.disconnect(passing.client))
    if (isEntry(world, passing)) return until(TURN_MS / 2)
    return passing.apiKey === fetch.key ? until(0) : null
  })
}

const SLOW_READ_MS = 4_000
const SLOW_ENTRY_MS = 300
const SLOW_SNAPSHOT_MS = 600

/**
 * The first worker reads the ledger slowly. It loses its locks when it has written its outputs; the other one mirrors
 * the same records, and its snapshot, which says so, comes behind the first one's entry. Cut off then (W7 without c),
 * the log tells the first worker nothing below its own entry of what the other did.
 */
export const slowReader = (world: World): void => {
  const { loop, plan, source, workers } = world
  const slow = workers[0]
  onTarget(world, (passing) => {
    if (passing.purpose.startsWith("ledger-snapshot")) {
      return { kind: "delay", requestMs: SLOW_SNAPSHOT_MS, answerMs: 1 }
    }
    if (slow === undefined || passing.client !== slow.client) return null
    if (passing.apiKey === fetch.key) return { kind: "delay", requestMs: SLOW_READ_MS, answerMs: 1 }
    if (isOutput(world, passing)) loop.after(plan.requests.latencyMs, () => source.disconnect(passing.client))
    return isEntry(world, passing) ? { kind: "delay", requestMs: SLOW_ENTRY_MS, answerMs: 1 } : null
  })
}

/**
 * KIP-1289 under transactions of version 1: the first acknowledgements of each worker have no answer, and arrive when
 * its next transaction is open under the same epoch. Who does not fence them first has them committed with outputs
 * that are not theirs.
 */
export const lateAcknowledgements = (world: World): void => {
  const { workers } = world
  const left = new Map(workers.map(({ name }) => [name, 3]))
  onTarget(world, (passing) => {
    const worker = workers.find(({ client }) => client === passing.client)
    const more = worker === undefined ? 0 : left.get(worker.name) ?? 0
    if (worker === undefined || more === 0 || passing.apiName !== "TxnShareAcknowledge") return null
    left.set(worker.name, more - 1)
    return { kind: "late", byMs: 150 }
  })
}
