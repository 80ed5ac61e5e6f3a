/** An answer of a megabyte that comes from the socket in pieces of 64 KB, put together. */
import { FrameReader } from "../../../src/wire/frames.ts"
import type { MicroCase } from "../microCase.ts"

const PIECE = 64 * 1024
const BODY = 1024 * 1024

const inPieces: MicroCase = {
  name: "put together an answer of 1 MB",
  warmUp: 100,
  operations: 20,
  prepare: () => {
    const bytes = Buffer.alloc(4 + BODY, 1)
    bytes.writeInt32BE(BODY, 0)
    const pieces = Array.from(
      { length: Math.ceil(bytes.length / PIECE) },
      (_, n) => bytes.subarray(n * PIECE, (n + 1) * PIECE)
    )
    let got: Buffer | null = null
    const reader = new FrameReader("broker:9092", 100 * BODY, (frame) => got = frame)
    return () => {
      for (const piece of pieces) reader.push(piece)
      return got
    }
  }
}

export const cases: ReadonlyArray<MicroCase> = [inPieces]
