import { assert, describe, it } from "@effect/vitest"
import { parseJaas } from "../../src/wire/jaas.ts"
import { SettingsError } from "../../src/wire/settings.ts"

const PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

describe("a JAAS line", () => {
  it("gives module and options", () => {
    assert.deepStrictEqual(parseJaas(`${PLAIN} required username="alice" password="s3cret";`), {
      module: "PlainLoginModule",
      options: { username: "alice", password: "s3cret" }
    })
  })

  it("may hold quotes, backslashes and everything else in a password", () => {
    const cases: ReadonlyArray<readonly [string, string]> = [
      [String.raw`"b\"c"`, "b\"c"],
      [String.raw`'it"s'`, "it\"s"],
      [String.raw`"a\\b"`, "a\\b"],
      [String.raw`"tab\tend"`, "tab\tend"],
      [String.raw`"\101\1012"`, "AA2"],
      [String.raw`"\$"`, "$"],
      [`"a;b=c // no comment /* none */ #"`, "a;b=c // no comment /* none */ #"],
      [`""`, ""],
      [`"pässwörd ✓"`, "pässwörd ✓"],
      ["bare-word_1.x$", "bare-word_1.x$"]
    ]
    for (const [written, meant] of cases) {
      assert.strictEqual(parseJaas(`${PLAIN} required password=${written};`).options["password"], meant, written)
    }
  })

  it("may be spread over lines, with comments between", () => {
    const line = `${PLAIN} REQUIRED // the login\n  username = "a" /* who */\n  password\t=\t"b"\n;\n`
    assert.deepStrictEqual(parseJaas(line).options, { username: "a", password: "b" })
  })

  it("is refused with the reason, and never with the password, when its form is wrong", () => {
    const cases: ReadonlyArray<readonly [string, RegExp]> = [
      ["", /login module is missing/],
      [`${PLAIN}`, /required/],
      [`${PLAIN} password="hunter2";`, /required/],
      [`${PLAIN} required password="hunter2"`, /semicolon/],
      [`${PLAIN} required password="hunter2;`, /quote is not closed/],
      [`${PLAIN} required password=;`, /option 1 has no value/],
      [`${PLAIN} required password "hunter2";`, /option 1 has no value/],
      [`${PLAIN} required password=hunter2/x;`, /in quotes/],
      [`${PLAIN} required password=hunter2&x;`, /in quotes/],
      [`${PLAIN} required password="hunter2"; ${PLAIN} required password="hunter2";`, /more than one/]
    ]
    for (const [line, reason] of cases) {
      try {
        parseJaas(line)
        assert.fail(`taken: ${line}`)
      } catch (error) {
        if (!(error instanceof SettingsError)) throw error
        assert.match(error.message, reason)
        assert.notInclude(error.message, "hunter2")
        assert.strictEqual(error.key, "sasl.jaas.config")
      }
    }
  })
})
