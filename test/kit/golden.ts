/** For tests with bytes written by hand. */
import { assert } from "@effect/vitest"
import type { Encoded, Message } from "../../src/wire/schema.ts"

/** Pieces of hexadecimal, each with a word on what it is. */
export const written = (...pieces: ReadonlyArray<readonly [hex: string, what: string]>): string =>
  pieces.map(([hex]) => hex.replaceAll(" ", "")).join("")

export const TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
export const TOPIC_ID_HEX = "000102030405060708090a0b0c0d0e0f"

/** Both ways: the value gives these bytes, and these bytes give the value (where it names every field). */
export const same = <F>(message: Message<F>, version: number, value: Encoded<F>, hex: string): void => {
  assert.strictEqual(Buffer.concat([...message.encode(version, value)]).toString("hex"), hex)
  const again = message.decode(version, Buffer.from(hex, "hex")) as Encoded<F>
  assert.strictEqual(Buffer.concat([...message.encode(version, again)]).toString("hex"), hex)
}
