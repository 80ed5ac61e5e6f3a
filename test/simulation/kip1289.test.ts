import { describe, it } from "@effect/vitest"
import { CHUNK, chunks, runSeeds } from "./runSeeds.ts"

describe("KIP-1289, under faults drawn from a seed: everything exactly once", () => {
  it.each(chunks(100))("ten seeds from %i", (from) => runSeeds("kip-1289", from, CHUNK))
})
