/**
 * The bounds of a comparison, taken so that a flow that runs is judged fairly: the source's ends first, then a wait
 * until the mirror has passed them, then the target's ends, then the source's again. A record of the source below the
 * first ends must be on the target; one between the first and the second may be there already.
 *
 * Where the mirror stands still before it has passed them, the comparison ends where the mirror is, and says so.
 */
import { Clock, Effect } from "effect"
import { findGroup } from "../../group/groupType.ts"
import type { Cluster } from "../../wire/cluster.ts"
import type { WireError } from "../../wire/errors.ts"
import { bothEnds, nothingUndone } from "../control/ends.ts"
import { endOffsets } from "../control/logOffsets.ts"
import { groupProgress, type ProgressMap, shareProgress } from "../control/offsets.ts"
import type { MirroredTopic } from "../control/topics.ts"

type Offsets = ReadonlyMap<string, number>

export interface Settled {
  /** Below these all must be mirrored. By partitionName of the source. */
  readonly required: Offsets
  /** Ends of the source as the comparison began. */
  readonly ends: Offsets
}

export interface Waiting {
  readonly source: Cluster
  readonly groupId: string
  readonly mode: "share" | "consumer"
  readonly committed: boolean
  readonly topics: ReadonlyArray<MirroredTopic>
  readonly onWait: (what: string | null) => void
}

const LOOK_MS = 500
/** A mirror that does not move for so long does not run, or is stuck: nothing to wait for. */
const STILL_MS = 10_000

const progressOf = ({ groupId, mode, source, topics }: Waiting): Effect.Effect<ProgressMap, WireError> =>
  mode === "share" ? shareProgress(source, groupId, topics) : groupProgress(source, groupId, topics)

const isAtWork = ({ groupId, source }: Waiting): Effect.Effect<boolean, WireError> =>
  Effect.map(findGroup(source, groupId), (group) => group !== null && group.state !== "Empty" && group.state !== "Dead")

/** How far the mirror has come below `ends`: the end where it has passed it. */
const reached = (waiting: Waiting, ends: Offsets): Effect.Effect<Map<string, number>, WireError> =>
  Effect.gen(function*() {
    const { committed, mode, source, topics } = waiting
    const before = mode === "share" ? yield* bothEnds(source, topics, committed) : null
    const found = yield* progressOf(waiting)
    const after = mode === "share" ? yield* bothEnds(source, topics, committed) : null
    // A group without a position: one that has just been joined is waited for; where nobody is at work nothing says
    // what is mirrored (it may not even be this group's work), so everything is to be there.
    if (found.size === 0 && !(yield* isAtWork(waiting))) return new Map(ends)
    const at = new Map<string, number>()
    for (const [name, end] of ends) {
      const known = found.get(name)
      const undone = known === undefined || before === null || after === null ||
        !nothingUndone(name, known.left, before, after)
      at.set(name, known !== undefined && !undone ? end : Math.min(end, known?.position ?? 0))
    }
    return at
  })

const behind = (at: Offsets, ends: Offsets): number =>
  [...ends].reduce((sum, [name, end]) => sum + Math.max(0, end - (at.get(name) ?? 0)), 0)

/** Takes the source's ends and waits for the mirror. */
export const settle = (waiting: Waiting): Effect.Effect<Settled, WireError> =>
  Effect.gen(function*() {
    const ends = yield* endOffsets(waiting.source, waiting.topics, waiting.committed)
    let at = yield* reached(waiting, ends)
    let left = behind(at, ends)
    let movedAt = yield* Clock.currentTimeMillis
    while (left > 0 && (yield* Clock.currentTimeMillis) - movedAt < STILL_MS) {
      waiting.onWait(`the mirror has ${left} offsets to go until where the source ended when this began`)
      yield* Effect.sleep(LOOK_MS)
      at = yield* reached(waiting, ends)
      const now = behind(at, ends)
      if (now < left) movedAt = yield* Clock.currentTimeMillis
      left = now
    }
    waiting.onWait(null)
    return { required: at, ends }
  })

const OPEN_MS = 90_000

/**
 * Ends of the target below which no transaction is open, so that a reader sees what is committed. `open`: partitions
 * where one did not end in time; their end is before it.
 */
export const settledTarget = (
  target: Cluster,
  topics: ReadonlyArray<MirroredTopic>,
  onWait: Waiting["onWait"]
): Effect.Effect<{ readonly ends: Offsets; readonly open: ReadonlySet<string> }, WireError> =>
  Effect.gen(function*() {
    const high = yield* endOffsets(target, topics, false)
    const deadline = (yield* Clock.currentTimeMillis) + OPEN_MS
    let stable = yield* endOffsets(target, topics, true)
    const open = () => [...high].filter(([name, end]) => (stable.get(name) ?? 0) < end).map(([name]) => name)
    while (open().length > 0 && (yield* Clock.currentTimeMillis) < deadline) {
      onWait(`a transaction is open on ${open()[0]} of the target`)
      yield* Effect.sleep(LOOK_MS)
      stable = yield* endOffsets(target, topics, true)
    }
    onWait(null)
    return {
      ends: new Map([...high].map(([name, end]) => [name, Math.min(end, stable.get(name) ?? end)])),
      open: new Set(open())
    }
  })
