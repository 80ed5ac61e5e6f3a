/** Frames on a byte stream: whatever the pieces they come in, and what of them is copied. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { EventEmitter } from "node:events"
import type { Socket } from "node:net"
import { FrameReader, FrameWriter } from "../../src/wire/frames.ts"

const framed = (body: Uint8Array): Buffer => {
  const size = Buffer.alloc(4)
  size.writeInt32BE(body.length)
  return Buffer.concat([size, body])
}

/** Cuts bytes at these places. */
const cut = (bytes: Buffer, places: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const sorted = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  return [0, ...sorted].map((from, n) => bytes.subarray(from, sorted[n] ?? bytes.length))
}

const read = (pieces: ReadonlyArray<Buffer>, maxBytes = 100_000_000): ReadonlyArray<Buffer> => {
  const found: Array<Buffer> = []
  const reader = new FrameReader("broker:9092", maxBytes, (frame) => found.push(frame))
  for (const piece of pieces) assert.isNull(reader.push(piece))
  return found
}

describe("answers", () => {
  it("are the same in whatever pieces they come", () => {
    const bodies = fc.array(fc.uint8Array({ minLength: 4, maxLength: 300 }), { maxLength: 8 })
    fc.assert(fc.property(bodies, fc.array(fc.nat(), { maxLength: 20 }), (all, places) => {
      const found = read(cut(Buffer.concat(all.map(framed)), places))
      assert.deepStrictEqual(found.map((frame) => [...frame]), all.map((body) => [...body]))
    }))
  })

  it("larger than what an announced size reserves are put together whole", () => {
    const body = Buffer.alloc(9_500_000, 1).map((_, n) => n % 251)
    const bytes = framed(body)
    const pieces = Array.from(
      { length: Math.ceil(bytes.length / 65_536) },
      (_, n) => bytes.subarray(n * 65_536, (n + 1) * 65_536)
    )
    const [found] = read(pieces)
    assert.isTrue(found?.equals(body))
  })

  it("share no bytes with each other: one may be changed in place while the next comes", () => {
    const bytes = Buffer.concat([
      framed(Buffer.from("aaaa")),
      framed(Buffer.from("bbbbbbbb")),
      framed(Buffer.from("cccc"))
    ])
    const found: Array<Buffer> = []
    const reader = new FrameReader("broker:9092", 100, (frame) => {
      found.push(Buffer.from(frame))
      frame.fill(0)
    })
    for (const piece of [bytes.subarray(0, 14), bytes.subarray(14)]) reader.push(piece)
    assert.deepStrictEqual(found.map(String), ["aaaa", "bbbbbbbb", "cccc"])
  })

  it("of an absurd size reserve nothing", () => {
    const before = process.memoryUsage().arrayBuffers
    const reader = new FrameReader("broker:9092", 2_000_000_000, () => assert.fail("no frame is whole"))
    const size = Buffer.alloc(4)
    size.writeInt32BE(1_999_999_999)
    assert.isNull(reader.push(size))
    assert.isNull(reader.push(Buffer.alloc(10)))
    assert.isBelow(process.memoryUsage().arrayBuffers - before, 100_000_000)
  })
})

class FakeSocket extends EventEmitter {
  readonly written: Array<Buffer> = []
  readonly sent: Array<(error?: Error) => void> = []
  write(bytes: Buffer, sent: (error?: Error) => void = () => {}): boolean {
    this.written.push(bytes)
    this.sent.push(sent)
    return true
  }
}

describe("a request", () => {
  const write = (body: ReadonlyArray<Buffer>, flexible: boolean): FakeSocket => {
    const socket = new FakeSocket()
    new FrameWriter(socket as unknown as Socket, "café").write({ key: 78, version: 2, flexible, body }, 0x01020304)
    return socket
  }

  it("starts with its header: size, key, version, correlation id, client id, and tagged fields where it is flexible", () => {
    for (const flexible of [true, false]) {
      const bytes = Buffer.concat(write([Buffer.from("bo"), Buffer.from("dy")], flexible).written)
      const head = [0, 78, 0, 2, 1, 2, 3, 4, 0, 5, ...Buffer.from("café"), ...(flexible ? [0] : [])]
      assert.deepStrictEqual([...bytes], [0, 0, 0, head.length + 4, ...head, ...Buffer.from("body")])
    }
  })

  it("that is large is a copy: what it was made of may be changed at once, and its memory waits until it is sent", () => {
    const socket = new FakeSocket()
    const writer = new FrameWriter(socket as unknown as Socket, "c")
    const send = (fill: number) => {
      const pieces = [Buffer.alloc(30_000, fill), Buffer.alloc(40_000, fill + 1)]
      writer.write({ key: 0, version: 9, flexible: true, body: pieces }, fill)
      for (const piece of pieces) piece.fill(99)
      return socket.written.at(-1) as Buffer
    }
    const whole = (bytes: Buffer, fill: number): boolean =>
      bytes.readInt32BE(0) === bytes.length - 4 &&
      bytes.subarray(-70_000).equals(Buffer.concat([Buffer.alloc(30_000, fill), Buffer.alloc(40_000, fill + 1)]))
    const first = send(1)
    const second = send(3)
    assert.isTrue(whole(first, 1) && whole(second, 3))
    socket.sent[0]?.()
    const third = send(5)
    assert.isTrue(whole(third, 5) && whole(second, 3))
    assert.strictEqual(third.buffer, first.buffer)
    // Nobody knows whether the system has let go of it.
    socket.sent[1]?.(new Error("write EPIPE"))
    assert.notStrictEqual(send(7).buffer, second.buffer)
  })
})
