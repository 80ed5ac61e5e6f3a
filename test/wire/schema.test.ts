import { assert, describe, it } from "@effect/vitest"
import { ProtocolError } from "../../src/wire/bytes.ts"
import { describeProducers } from "../../src/wire/messages/describeProducers.ts"
import { listOffsets } from "../../src/wire/messages/listOffsets.ts"
import {
  type Api,
  arr,
  bool,
  bytes,
  defineApi,
  type Encoded,
  float64,
  int16,
  int32,
  int64,
  int8,
  type Message,
  narr,
  nstr,
  nstruct,
  parseVersions,
  records,
  requestHeaderVersion,
  responseHeaderVersion,
  str,
  struct,
  uint16,
  uint32,
  uuid,
  ZERO_UUID
} from "../../src/wire/schema.ts"

/** An API whose request has these fields; versions 0 to 3, flexible from 2. */
const request = <const F extends object>(fields: F): Message<F> =>
  defineApi({ key: 999, name: "Test", versions: "0-3", flexible: 2, request: fields, response: {} }).request
const hex = <F>(message: Message<F>, version: number, value: Encoded<F>): string =>
  Buffer.concat([...message.encode(version, value)]).toString("hex")
const decode = <F>(message: Message<F>, version: number, text: string) =>
  message.decode(version, Buffer.from(text.replaceAll(" ", ""), "hex"))

const refused = (run: () => unknown, what: RegExp): void => {
  try {
    run()
  } catch (cause) {
    assert.instanceOf(cause, ProtocolError)
    return assert.match(cause.what, what)
  }
  assert.fail(`nothing was refused, ${what} was expected`)
}

describe("versions and defaults", () => {
  const message = request({
    always: int32("0+"),
    late: int32("1+", { default: 5 }),
    silent: str("1+", { default: "", ignorable: true }),
    early: nstr("0", "0", { default: null })
  })

  it("a field left out goes out with its default", () => {
    assert.strictEqual(hex(message, 1, { always: 1 }), "00000001 00000005 0000".replaceAll(" ", ""))
  })

  it("a field that the version lacks decodes to its default", () => {
    assert.deepStrictEqual(decode(message, 0, "00000001 ffff"), { always: 1, late: 5, silent: "", early: null })
    assert.deepStrictEqual(decode(message, 1, "00000001 00000006 0001 78"), {
      always: 1,
      late: 6,
      silent: "x",
      early: null
    })
  })

  it("a value in a field that the version lacks is refused, not dropped", () => {
    refused(() => hex(message, 0, { always: 1, late: 6 }), /^TestRequest version 0: late cannot be sent in version 0/)
    refused(() => hex(message, 1, { always: 1, early: "x" }), /early cannot be sent in version 1/)
  })

  it("it is dropped where it is the default, or ignorable", () => {
    assert.strictEqual(hex(message, 0, { always: 1, late: 5, silent: "dropped", early: null }), "00000001ffff")
  })

  it("the same inside lists and structs: a list, a struct of defaults and an empty list are defaults", () => {
    const nested = request({
      list: arr("0+", {
        inner: struct("1+", { a: int32("1+", { default: -1 }), b: arr("1+", int32("1+")) }, { optional: true })
      })
    })
    assert.strictEqual(hex(nested, 0, { list: [{}] }), "00000001")
    assert.strictEqual(hex(nested, 0, { list: [{ inner: { a: -1, b: [] } }] }), "00000001")
    refused(() => hex(nested, 0, { list: [{ inner: { a: -1, b: [1] } }] }), /list\.inner cannot be sent in version 0/)
    refused(() => hex(nested, 0, { list: [{ inner: { a: 0, b: [] } }] }), /list\.inner cannot be sent in version 0/)
    assert.deepStrictEqual(decode(nested, 1, "00000001 00000007 00000000"), { list: [{ inner: { a: 7, b: [] } }] })
  })

  it("defaults that messages share cannot be changed by one of them", () => {
    const lists = request({
      late: arr("1+", int32("1+"), { default: [] }),
      deep: struct("1+", { a: int32("1+") }, { optional: true })
    })
    const value = decode(lists, 0, "")
    assert.throws(() => (value.late as Array<number>).push(1), TypeError)
    assert.throws(() => Object.assign(value.deep, { a: 1 }), TypeError)
  })

  it("a version that is not ours is refused in both directions", () => {
    refused(() => hex(message, 4, { always: 1 }), /^TestRequest has no version 4 here \(0 to 3\)$/)
    refused(() => decode(message, -1, ""), /has no version -1 here/)
    refused(() => decode(message, 0.5, ""), /has no version 0.5 here/)
  })

  it("version ranges are read as Kafka writes them", () => {
    assert.deepStrictEqual(parseVersions("3"), { min: 3, max: 3 })
    assert.deepStrictEqual(parseVersions("3-12"), { min: 3, max: 12 })
    assert.deepStrictEqual(parseVersions("3+"), { min: 3, max: Infinity })
    assert.isAbove(parseVersions("none").min, parseVersions("none").max)
    for (const text of ["", "+", "1-", "-1", "1..2", "v1"]) refused(() => parseVersions(text), /is not a version range/)
  })
})

describe("tagged fields (KIP-482)", () => {
  const message = request({
    plain: int8("0+"),
    second: int32("2+", { default: 0, tag: 1, tagged: "2+", ignorable: true }),
    first: nstr("2+", "2+", { default: null, tag: 0, tagged: "2+" })
  })

  it("those that are their default stay out, the others go in the order of their tags", () => {
    assert.strictEqual(hex(message, 2, { plain: 1 }), "0100")
    assert.strictEqual(hex(message, 2, { plain: 1, second: 0, first: null }), "0100")
    assert.strictEqual(
      hex(message, 2, { plain: 1, second: 7, first: "x" }),
      "01 02 00 02 02 78 01 04 00000007".replaceAll(" ", "")
    )
  })

  it("unknown ones are skipped, wherever they stand", () => {
    const known = { plain: 1, second: 7, first: "x" }
    assert.deepStrictEqual(decode(message, 2, "01 04 00 02 02 78 01 04 00000007 05 00 c801 03 aabbcc"), known)
    const none = request({ plain: int8("0+") })
    assert.deepStrictEqual(decode(none, 2, "01 02 00 01 aa 07 02 bbcc"), { plain: 1 })
  })

  it("one that leaves bytes behind, or takes more than its length, is refused", () => {
    refused(() => decode(message, 2, "01 01 01 05 00000007 00"), /second: 1 bytes of the tagged field are left over/)
    refused(() => decode(message, 2, "01 01 01 03 000000 07"), /ends early/)
    refused(() => decode(message, 2, "01 01 63 ffffffff0f"), /ends early/)
    refused(() => decode(message, 2, "01 ffffffff0f"), /ends early/)
  })

  it("there are none in older versions", () => {
    assert.strictEqual(hex(message, 1, { plain: 1, second: 7 }), "01")
    refused(() => hex(message, 1, { plain: 1, first: "x" }), /first cannot be sent in version 1/)
  })

  it("a tagged struct stays out while it equals its defaults", () => {
    const leader = request({
      leader: struct("2+", { id: int32("2+", { default: -1 }) }, { optional: true, tag: 0, tagged: "2+" })
    })
    assert.strictEqual(hex(leader, 2, {}), "00")
    assert.strictEqual(hex(leader, 2, { leader: { id: -1 } }), "00")
    assert.strictEqual(hex(leader, 2, { leader: {} }), "00")
    assert.strictEqual(hex(leader, 2, { leader: { id: 2 } }), "01 00 05 00000002 00".replaceAll(" ", ""))
    assert.deepStrictEqual(decode(leader, 2, "00"), { leader: { id: -1 } })
  })
})

describe("null and empty", () => {
  const message = request({
    text: nstr("0+", "1+"),
    list: narr("0+", "1+", int8("0+")),
    inner: nstruct("0+", "1+", { a: int8("0+") })
  })
  const nothing = { text: null, list: null, inner: null }

  it("are different things, in both forms", () => {
    assert.strictEqual(hex(message, 1, nothing), "ffff ffffffff ff".replaceAll(" ", ""))
    assert.strictEqual(hex(message, 2, nothing), "00 00 ff 00".replaceAll(" ", ""))
    assert.strictEqual(
      hex(message, 1, { text: "", list: [], inner: { a: 1 } }),
      "0000 00000000 01 01".replaceAll(" ", "")
    )
    assert.deepStrictEqual(decode(message, 2, "00 00 ff 00"), nothing)
    assert.deepStrictEqual(decode(message, 2, "01 01 01 01 00 00"), { text: "", list: [], inner: { a: 1 } })
  })

  it("null is refused where the version does not allow it, in both directions", () => {
    refused(() => hex(message, 0, { ...nothing, list: [], inner: { a: 1 } }), /text is null where/)
    refused(() => hex(message, 0, { ...nothing, text: "", inner: { a: 1 } }), /list is null where/)
    refused(() => hex(message, 0, { ...nothing, text: "", list: [] }), /inner is null where/)
    refused(() => decode(message, 0, "ffff"), /text is null where/)
    refused(() => decode(message, 0, "0000 ffffffff"), /list is null where/)
  })

  it("null records are read in every version, and go out as none where the version has no null", () => {
    const batch = request({ records: records("0+", "0") })
    assert.strictEqual(hex(batch, 0, { records: null }), "ffffffff")
    assert.strictEqual(hex(batch, 1, { records: null }), "00000000")
    assert.strictEqual(hex(batch, 2, { records: null }), "0100")
    assert.deepStrictEqual(decode(batch, 1, "ffffffff"), { records: null })
  })
})

describe("numbers, ids and texts are sent exactly or not at all", () => {
  it("a number out of its field's range, or not an integer, is refused with the range", () => {
    const cases: ReadonlyArray<readonly [Message<{ readonly n: ReturnType<typeof int8> }>, ReadonlyArray<number>]> = [
      [request({ n: int8("0+") }), [-0x81, 0x80, 0.5, NaN]],
      [request({ n: int16("0+") }), [-0x8001, 0x8000]],
      [request({ n: uint16("0+") }), [-1, 0x1_0000]],
      [request({ n: int32("0+") }), [-0x8000_0001, 0x8000_0000, Infinity]],
      [request({ n: uint32("0+") }), [-1, 0x1_0000_0000]],
      [request({ n: int64("0+") }), [2 ** 53, -(2 ** 53), 1.5]]
    ]
    for (const [message, wrong] of cases) {
      for (const n of wrong) {
        refused(() => hex(message, 0, { n }), /^TestRequest version 0: n is .*, not an integer from -?\d+ to \d+$/)
      }
    }
  })

  it("the ends of each range are sent as they are", () => {
    const n = request({
      a: int64("0+"),
      b: int64("0+"),
      c: uint32("0+"),
      d: uint16("0+"),
      e: float64("0+"),
      f: bool("0+")
    })
    const value = {
      a: Number.MAX_SAFE_INTEGER,
      b: Number.MIN_SAFE_INTEGER,
      c: 0xffff_ffff,
      d: 0xffff,
      e: -0.1,
      f: true
    }
    assert.deepStrictEqual(decode(n, 0, hex(n, 0, value)), value)
    assert.strictEqual(hex(request({ n: int64("0+") }), 0, { n: -1 }), "ffffffffffffffff")
    assert.strictEqual(hex(request({ n: int64("0+") }), 0, { n: -4294967296 }), "ffffffff00000000")
  })

  it("a 64-bit value that a number cannot hold is refused, not rounded", () => {
    const n = request({ n: int64("0+") })
    assert.deepStrictEqual(decode(n, 0, "001fffffffffffff"), { n: Number.MAX_SAFE_INTEGER })
    refused(() => decode(n, 0, "0020000000000001"), /a 64-bit value of 9007199254740993 is beyond/)
    refused(() => decode(n, 0, "7fffffffffffffff"), /a 64-bit value of 9223372036854775807 is beyond/)
    refused(() => decode(n, 0, "8000000000000000"), /a 64-bit value of -9223372036854775808 is beyond/)
  })

  it("a record's time in an answer may be anything: what was asked for is read all the same", () => {
    const nanoseconds = 1_700_000_000_000_000_000n
    const answers = [
      [listOffsets.response, 9, {
        topics: [{ name: "t", partitions: [{ partitionIndex: 0, errorCode: 0, timestamp: 1, offset: 5 }] }]
      }],
      [describeProducers.response, 0, {
        topics: [{
          name: "t",
          partitions: [{
            partitionIndex: 0,
            errorCode: 0,
            activeProducers: [{ producerId: 7, producerEpoch: 2, coordinatorEpoch: 0, lastTimestamp: 1 }]
          }]
        }]
      }]
    ] as const
    for (const [message, version, value] of answers) {
      const bytes = Buffer.concat([...message.encode(version, value as never)])
      const one = Buffer.from("0000000000000001", "hex")
      bytes.writeBigInt64BE(nanoseconds, bytes.indexOf(one))
      assert.include(JSON.stringify(message.decode(version, bytes)), String(Number(nanoseconds)))
    }
  })

  it("an id is 22 characters of base64url", () => {
    const id = request({ id: uuid("0+") })
    assert.strictEqual(hex(id, 0, { id: ZERO_UUID }), "00".repeat(16))
    assert.strictEqual(hex(id, 0, { id: "_____________________w" }), "ff".repeat(16))
    for (const wrong of ["", "AAAA", `${ZERO_UUID}AA`, "!!!!!!!!!!!!!!!!!!!!!!"]) {
      refused(() => hex(id, 0, { id: wrong }), /is not an id of 22 base64url characters/)
    }
  })

  it("a text is at most 32767 bytes of UTF-8, in both forms and directions", () => {
    const text = request({ text: str("0+") })
    for (const version of [0, 2]) {
      assert.strictEqual(decode(text, version, hex(text, version, { text: "ß".repeat(16383) })).text.length, 16383)
      refused(
        () => hex(text, version, { text: "ß".repeat(16384) }),
        /text is a string of 32768 bytes, more than Kafka allows/
      )
    }
    refused(() => decode(text, 2, `818002${"61".repeat(32768)}00`), /text is a string of 32768 bytes/)
  })
})

describe("what is absurd is refused before anything is made of it", () => {
  it("a list longer than the bytes left", () => {
    const list = request({ list: arr("0+", int32("0+")) })
    refused(() => decode(list, 0, "7fffffff 00000000"), /list announces 2147483647 elements in 4 bytes/)
    refused(() => decode(list, 2, "ffffffff0f 00"), /list announces 4294967294 elements in 1 bytes/)
    refused(() => decode(list, 0, "00000002 00000000"), /ends early: 4 more bytes are announced, 0 are there/)
  })

  it("a text or bytes longer than the bytes left", () => {
    const fields = request({ text: str("0+"), bytes: bytes("0+") })
    refused(() => decode(fields, 0, "7fff 61"), /ends early: 32767 more bytes are announced, 1 are there/)
    refused(() => decode(fields, 0, "0000 7fffffff"), /ends early: 2147483647 more/)
    refused(() => decode(fields, 2, "01 ffffffff0f"), /ends early: 4294967294 more/)
  })

  it("a varint of more than 32 bits", () => {
    const text = request({ text: str("0+") })
    refused(() => decode(text, 2, "ffffffff1f"), /a varint is longer than 32 bits/)
    refused(() => decode(text, 2, "ffffffffff01"), /a varint is longer than 32 bits/)
  })

  it("bytes left over", () => {
    refused(() => decode(request({ n: int8("0+") }), 0, "0102"), /^TestRequest version 0: 1 bytes are left over$/)
  })

  it("a value of another JavaScript type, as from a caller without types", () => {
    const message = request({ text: str("0+"), list: arr("0+", int8("0+")) })
    for (const value of [undefined, null, { text: 5, list: [] }, { text: "", list: 5 }, { text: "", list: ["x"] }]) {
      refused(() => message.encode(0, value as never), /^TestRequest version 0: /)
    }
  })
})

describe("record bytes", () => {
  const message = request({ name: str("0+"), records: records("0+", "0+"), last: int8("0+") })

  it("are sent as the piece they are, and read as a slice of the answer", () => {
    const batch = Buffer.alloc(5000, 7)
    const pieces = message.encode(2, { name: "x", records: batch, last: 1 })
    assert.isTrue(pieces.includes(batch))
    const whole = Buffer.concat([...pieces])
    const decoded = message.decode(2, whole)
    assert.strictEqual(decoded.records?.buffer, whole.buffer)
    assert.deepStrictEqual(decoded, { name: "x", records: batch, last: 1 })
  })

  it("between pieces nothing is lost, however many there are", () => {
    const many = request({ list: arr("0+", { name: str("0+"), records: records("0+", "0+") }) })
    const list = Array.from(
      { length: 200 },
      (_, i) => ({ name: `n${i}`.repeat(1 + (i % 60)), records: Buffer.alloc(i * 37, i) })
    )
    for (const version of [1, 2]) {
      assert.deepStrictEqual(many.decode(version, Buffer.concat([...many.encode(version, { list })])), { list })
    }
  })
})

describe("types", () => {
  it("a field without a default is required; one with a default is not; what is decoded is complete", () => {
    const message = request({
      a: int32("0+"),
      b: int32("0+", { default: 1 }),
      list: arr("0+", { c: str("0+"), d: str("0+", { default: "" }) })
    })
    const value: Encoded<typeof message.fields> = { a: 1, list: [{ c: "" }] }
    // @ts-expect-error a is required
    const withoutA: Encoded<typeof message.fields> = { list: [] }
    // @ts-expect-error c is required
    const withoutC: Encoded<typeof message.fields> = { a: 1, list: [{}] }
    refused(() => message.encode(0, { ...withoutC, ...withoutA, a: "x" as never }), /a is x, not an integer/)
    const complete: {
      readonly a: number
      readonly b: number
      readonly list: ReadonlyArray<{ readonly c: string; readonly d: string }>
    } = message
      .decode(0, Buffer.concat([...message.encode(0, value)]))
    assert.deepStrictEqual(complete, { a: 1, b: 1, list: [{ c: "", d: "" }] })
  })

  it("a struct may have fields named type and versions", () => {
    const message = request({ list: arr("0+", { type: int8("0+"), versions: arr("0+", int8("0+")) }) })
    assert.deepStrictEqual(decode(message, 0, "00000001 01 00000001 02"), { list: [{ type: 1, versions: [2] }] })
  })
})

describe("headers", () => {
  const api = (key: number): Api<object, object> =>
    defineApi({ key, name: "Test", versions: "0-3", flexible: 2, request: {}, response: {} })

  it("have tagged fields from the first flexible version on, except the answer of ApiVersions (KIP-511)", () => {
    assert.deepStrictEqual([1, 2].map((v) => requestHeaderVersion(api(3), v)), [1, 2])
    assert.deepStrictEqual([1, 2].map((v) => responseHeaderVersion(api(3), v)), [0, 1])
    assert.deepStrictEqual([1, 2].map((v) => requestHeaderVersion(api(18), v)), [1, 2])
    assert.deepStrictEqual([1, 2].map((v) => responseHeaderVersion(api(18), v)), [0, 0])
  })
})
