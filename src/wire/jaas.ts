/**
 * Reads `sasl.jaas.config` as Java users have it:
 *
 *   org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b\"c";
 *
 * The grammar is that of Kafka's JaasConfig class over java.io.StreamTokenizer: words of letters, digits, `.`, `-`,
 * `_`, `$`; strings in double or single quotes with C escapes (octal too); comments as in Java; `;` at the end.
 *
 * Guarantees: an error says what is wrong with the line's form and never quotes a value.
 */
import { type SettingsError, wrongSetting } from "./settings.ts"

export interface JaasEntry {
  /** The class without its package: "PlainLoginModule". */
  readonly module: string
  readonly options: Readonly<Record<string, string>>
}

type Token = { readonly kind: "word" | "quoted"; readonly text: string } | {
  readonly kind: "sign"
  readonly text: string
}

const KEY = "sasl.jaas.config"
const FORM = "LoginModuleClass required name=\"value\" ... ;"
const wrong = (why: string): SettingsError => wrongSetting(KEY, "", `${FORM} (${why})`)

const ESCAPES: Readonly<Record<string, string>> = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" }
const QUOTED = /(["'])((?:\\[\s\S]|(?!\1)[^\\\n\r])*)\1/y
const WORD = /[A-Za-z0-9._$\u0080-\uffff-]+/y
const SKIPPED = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y

const unescape = (quoted: string): string =>
  quoted.replace(
    /\\([0-3][0-7]{0,2}|[4-7][0-7]?|[\s\S])/g,
    (_, escaped: string) =>
      /^[0-7]/.test(escaped) ? String.fromCharCode(Number.parseInt(escaped, 8)) : ESCAPES[escaped] ?? escaped
  )

const tokens = (line: string): ReadonlyArray<Token> => {
  const found: Array<Token> = []
  let at = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(line)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  while (at < line.length) {
    if (take(SKIPPED) !== null) continue
    const quoted = take(QUOTED)
    if (quoted !== null) {
      found.push({ kind: "quoted", text: unescape(quoted[2] as string) })
      continue
    }
    const word = take(WORD)
    if (word !== null) {
      found.push({ kind: "word", text: word[0] })
      continue
    }
    const sign = line[at++] as string
    if (sign === "\"" || sign === "'") throw wrong("a quote is not closed on its line")
    if (sign !== "=" && sign !== ";") throw wrong(`at character ${at} there is a sign that has to be in quotes`)
    found.push({ kind: "sign", text: sign })
  }
  return found
}

const FLAGS = new Set(["required", "requisite", "sufficient", "optional"])

/** Reads the one entry of the line. Throws SettingsError. */
export const parseJaas = (line: string): JaasEntry => {
  const all = tokens(line)
  const [module, flag] = all
  if (module === undefined || module.kind === "sign") throw wrong("the login module is missing")
  if (flag === undefined || !FLAGS.has(flag.text.toLowerCase())) {
    throw wrong("after the login module comes the word required")
  }
  const options: Record<string, string> = {}
  let at = 2
  while (at < all.length && all[at]?.text !== ";") {
    const [key, equals, value] = all.slice(at, at + 3)
    if (key === undefined || key.kind === "sign") throw wrong(`option ${Object.keys(options).length + 1} has no name`)
    if (equals?.kind !== "sign" || equals.text !== "=" || value === undefined || value.kind === "sign") {
      throw wrong(`option ${Object.keys(options).length + 1} has no value`)
    }
    options[key.text] = value.text
    at += 3
  }
  if (at >= all.length) throw wrong("it does not end with a semicolon")
  if (at < all.length - 1) throw wrong("there is more than one entry")
  return { module: module.text.slice(module.text.lastIndexOf(".") + 1), options }
}
