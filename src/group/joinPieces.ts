/** Pieces of a partition that follow each other, from several answers, as one: whoever copies them can put them together. */
import type { BatchView } from "../wire/batch/recordBatch.ts"
import type { Fetched } from "./shared.ts"

interface Joined {
  piece: Fetched
  /** Its own, once it is made of several. */
  batches: Array<BatchView> | null
}

const follows = (piece: Fetched, before: Fetched): boolean =>
  piece.first === before.next && piece.gap === null && before.gap === null

const append = (joined: Joined, piece: Fetched): void => {
  const { piece: before } = joined
  joined.batches ??= [...before.batches]
  for (const batch of piece.batches) joined.batches.push(batch)
  joined.piece = {
    ...piece,
    first: before.first,
    bytes: before.bytes + piece.bytes,
    abortedRecords: before.abortedRecords + piece.abortedRecords,
    leases: [...before.leases ?? [], ...piece.leases ?? []]
  }
}

/** In the order of the first of each. Pure. */
export const joinPieces = (pieces: ReadonlyArray<Fetched>): ReadonlyArray<Fetched> => {
  const all: Array<Joined> = []
  /** By generation, which is one partition's. */
  const newest = new Map<number, Joined>()
  for (const piece of pieces) {
    const before = newest.get(piece.generation)
    if (before !== undefined && follows(piece, before.piece)) {
      append(before, piece)
      continue
    }
    const joined: Joined = { piece, batches: null }
    newest.set(piece.generation, joined)
    all.push(joined)
  }
  return all.map(({ batches, piece }) => batches === null ? piece : { ...piece, batches })
}
