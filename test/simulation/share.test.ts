import { describe, it } from "@effect/vitest"
import { CHUNK, chunks, runSeeds } from "./runSeeds.ts"

describe("share mode, under faults drawn from a seed: everything exactly once", () => {
  it.each(chunks(100))("ten seeds from %i", (from) => runSeeds("share", from, CHUNK))
})
