/** The rules against everything that may go wrong, and each known-wrong variation of them, which must be caught. */
import { assert, describe, it } from "@effect/vitest"
import { Patience } from "../../../src/txn/ledger/fencing.ts"
import type { Mutations } from "../../../src/txn/ledger/mutations.ts"
import { checkClaims } from "../../../src/txn/ledger/rules.ts"
import { LedgerTail } from "../../../src/txn/ledger/tail.ts"
import { simulate, type SimulationOptions } from "./actors.ts"
import { claimOf, rangesOf, SLOT, Worker } from "./world.ts"

const run = (options: SimulationOptions): string | null => simulate(options, (world) => new Worker(world))

const SEEDS = 400

/** The first violation among some seeds. */
const firstViolation = (
  options: Omit<SimulationOptions, "seed">,
  seeds = 3_000
): { readonly seed: number; readonly what: string } | null => {
  for (let seed = 0; seed < seeds; seed++) {
    const what = run({ ...options, seed })
    if (what !== null) return { seed, what }
  }
  return null
}

describe("under crashes, lost and late requests, fencing, lost locks, late markers and pruning", () => {
  for (const version of [2, 1] as const) {
    it(`each record has one committed output and is acknowledged, transactions of version ${version}`, () => {
      const found = firstViolation({ records: 6, version }, SEEDS)
      assert.isNull(found, found === null ? "" : `seed ${found.seed}: ${found.what}`)
    })
  }

  it("also with three workers of one lane each over two records", () => {
    const found = firstViolation({ records: 2, version: 2, workers: 3, lanesPerWorker: 1 }, SEEDS)
    assert.isNull(found, found === null ? "" : `seed ${found.seed}: ${found.what}`)
  })
})

describe("a known-wrong variation is caught", () => {
  const caught = (
    name: string,
    mutations: Mutations,
    expected: RegExp,
    options: Partial<SimulationOptions> = {}
  ): void => {
    it(name, () => {
      const found = firstViolation({ records: 4, version: 2, mutations, ...options })
      assert.isNotNull(found, "no seed finds it: the simulation proves nothing about this rule")
      assert.match(found.what, expected)
    })
  }
  const DUPLICATE = /two committed outputs/
  const LOSS = /no committed output|two committed outputs/

  caught("W1: no check before the commit", { skipCheck: true }, DUPLICATE)
  caught("W2: an undecided earlier entry counts as absent", { undecidedIsAbsent: true }, DUPLICATE)
  caught("W3: acknowledged before the commit is confirmed", { acceptBeforeCommit: true }, /no committed output/)
  caught("W4: the tail starts at the log's end", { startAtEnd: true }, DUPLICATE)
  caught("W5: a marker closes by producer id alone", { closeByProducer: true }, LOSS)
  caught("W5: a marker closes by equal epoch", { closeByEquality: true }, /stuck|two committed outputs/)
  caught("W6: a snapshot replaces what is known", { snapshotReplaces: true }, DUPLICATE)
  caught("W7: pruned below what is undecided", { pruneUndecided: true }, DUPLICATE)
  // Two rules hold here, and each makes up for the other: see the control below.
  caught("W7: pruned before the last stable offset has passed the snapshot, and gone on over it", {
    pruneEarly: true,
    goOnWhenPruned: true
  }, DUPLICATE)
  caught("W7: pruned without a snapshot", { pruneWithoutSnapshot: true }, DUPLICATE)
  // Lanes' producers are 100 and up in the order they first ask; every other lane here is a sibling or is taken for one.
  caught("W8: a sibling's undecided entry counts as own", { siblingIsOwn: () => true }, DUPLICATE, {
    workers: 1,
    lanesPerWorker: 3
  })
  caught("W9: begins again after an unanswered abort without InitProducerId", { beginWithoutInit: true }, DUPLICATE)
  caught("W11: waits for later entries too", { waitForLater: true }, /stuck/, { steps: 100 })
})

it("pruning early alone, or going on over a pruned offset alone, does no harm", () => {
  assert.isNull(firstViolation({ records: 4, version: 2, mutations: { goOnWhenPruned: true } }, SEEDS))
  assert.isNull(firstViolation({ records: 4, version: 2, mutations: { pruneEarly: true } }, SEEDS))
})

/** Two lanes take turns: each writes its entry while the other's last abort has no marker yet. */
const turns = (rounds: number, mutations: Mutations): number => {
  const tail = new LedgerTail(0)
  let offset = 0
  const epochs = [0, 0]
  const commits: Array<number> = []
  const entryOf = (lane: number) => ({
    kind: "done" as const,
    slot: SLOT,
    ranges: rangesOf([lane === 0 ? 0 : 1, 2]),
    transactionalId: `l${lane}`,
    transactionVersion: 2 as const,
    targets: []
  })
  const write = (lane: number): number => {
    tail.feed({
      kind: "data",
      baseOffset: offset,
      lastOffset: offset,
      producerId: lane,
      epoch: epochs[lane] as number,
      transactional: true,
      entries: [{ offset, size: 1, entry: entryOf(lane) }]
    })
    return offset++
  }
  const abortMarker = (lane: number): void => {
    epochs[lane] = (epochs[lane] as number) + 1
    tail.feed({
      kind: "marker",
      baseOffset: offset,
      lastOffset: offset++,
      producerId: lane,
      epoch: epochs[lane] as number,
      commit: false
    })
  }
  write(1)
  for (let round = 0; round < rounds && commits.length === 0; round++) {
    const lane = round % 2
    const x = write(lane)
    const own = { producerId: lane, epoch: epochs[lane] as number }
    const check = () => checkClaims(tail, x, own, [claimOf([lane === 0 ? 0 : 1, 2])], mutations)
    let verdict = check()
    // The other one's abort gets its marker only now.
    abortMarker(1 - lane)
    if (verdict.kind === "wait") verdict = check()
    if (verdict.kind === "commit") commits.push(lane)
  }
  return commits.length
}

/** Two lanes that need `neededMs` from entry to commit, and fence each other's entries when patience is over. */
const fencings = (baseMs: number, neededMs: number, most: number): number | null => {
  const patience = new Patience(baseMs)
  for (let fenced = 0; fenced < most; fenced++) {
    const id = `l${fenced % 2}`
    if (patience.of(id) >= neededMs) return fenced
    patience.fenced(id)
  }
  return null
}

describe("two lanes after the same records come to an end", () => {
  it("by waiting for the earlier entry; W10, aborting instead, goes on for ever", () => {
    assert.strictEqual(turns(1_000, {}), 1)
    assert.strictEqual(turns(1_000, { abortOnUndecided: true }), 0)
  })

  it("by patience that doubles; W12, fencing at once, goes on for ever", () => {
    assert.isAtMost(fencings(100, 60_000, 10_000) ?? Infinity, 24)
    assert.isNull(fencings(0, 60_000, 10_000))
  })
})
