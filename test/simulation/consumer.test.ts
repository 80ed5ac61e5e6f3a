import { describe, it } from "@effect/vitest"
import { CHUNK, chunks, runSeeds } from "./runSeeds.ts"

describe("consumer mode, in order too, under faults drawn from a seed: everything exactly once", () => {
  it.each(chunks(100))("ten seeds from %i", (from) => runSeeds("consumer", from, CHUNK))
})
