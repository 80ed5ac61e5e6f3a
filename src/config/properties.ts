/**
 * Java's properties format, as java.util.Properties.load reads it: for `${file:PATH:KEY}` and for the import of
 * MirrorMaker 2 files, which builds on this.
 *
 * Rules kept: "#" and "!" start a comment only at the beginning of a line (a JAAS line with either is whole); "=",
 * ":" or white space ends a key; a line that ends in an odd number of backslashes goes on in the next, whose leading
 * white space is dropped; \t \n \r \f and \uXXXX are escapes, any other escaped character is itself; the last of two
 * equal keys wins. Text is UTF-8, where Java's InputStream variant would read Latin-1.
 */

export interface PropertiesFile {
  readonly entries: ReadonlyMap<string, string>
  /** 1-based line of each key's last appearance. */
  readonly lines: ReadonlyMap<string, number>
  /** Lines whose \u escape is malformed (Java throws there). */
  readonly malformed: ReadonlyArray<number>
}

const BLANK = /^[ \t\f]+/

/** Logical lines: comments and empty lines gone, continuations joined. */
const logicalLines = (text: string): ReadonlyArray<{ readonly line: number; readonly text: string }> => {
  const natural = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/)
  const logical: Array<{ readonly line: number; readonly text: string }> = []
  for (let i = 0; i < natural.length; i++) {
    const line = i + 1
    let current = (natural[i] as string).replace(BLANK, "")
    if (current === "" || current.startsWith("#") || current.startsWith("!")) continue
    while (endsInContinuation(current)) {
      current = current.slice(0, -1)
      if (i + 1 >= natural.length) break
      i += 1
      current += (natural[i] as string).replace(BLANK, "")
    }
    logical.push({ line, text: current })
  }
  return logical
}

const endsInContinuation = (line: string): boolean => {
  const backslashes = /\\*$/.exec(line)?.[0].length ?? 0
  return backslashes % 2 === 1
}

const SIMPLE_ESCAPES: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f" }

/** null when a \u escape has not four hexadecimal digits. */
const unescape = (text: string): string | null => {
  let out = ""
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string
    if (c !== "\\") {
      out += c
      continue
    }
    i += 1
    const escaped = text[i]
    if (escaped === undefined) break
    if (escaped !== "u") {
      out += SIMPLE_ESCAPES[escaped] ?? escaped
      continue
    }
    const digits = text.slice(i + 1, i + 5)
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) return null
    out += String.fromCharCode(Number.parseInt(digits, 16))
    i += 4
  }
  return out
}

/** Where the key ends and where the value starts. */
const splitEntry = (line: string): { readonly key: string; readonly value: string } => {
  let end = 0
  while (end < line.length && !/[=: \t\f]/.test(line[end] as string)) end += line[end] === "\\" ? 2 : 1
  end = Math.min(end, line.length)
  const rest = line.slice(end).replace(/^[ \t\f]*[=:]?[ \t\f]*/, "")
  return { key: line.slice(0, end), value: rest }
}

/** Reads a properties file. Never throws. */
export const readProperties = (text: string): PropertiesFile => {
  const entries = new Map<string, string>()
  const lines = new Map<string, number>()
  const malformed: Array<number> = []
  for (const logical of logicalLines(text)) {
    const split = splitEntry(logical.text)
    const key = unescape(split.key)
    const value = unescape(split.value)
    if (key === null || value === null) {
      malformed.push(logical.line)
      continue
    }
    entries.set(key, value)
    lines.set(key, logical.line)
  }
  return { entries, lines, malformed }
}

/**
 * Whether a file is a MirrorMaker 2 properties file and not YAML: by its extension, or because its first lines of
 * substance are `key = value` where YAML would have `key: value`.
 */
export const looksLikeProperties = (path: string, text: string): boolean => {
  if (/\.(ya?ml|json)$/i.test(path)) return false
  if (/\.properties$/i.test(path)) return true
  const first = text.split(/\r\n|\n|\r/).find((line) => !/^\s*([#!].*)?$/.test(line)) ?? ""
  return /^\s*[A-Za-z0-9_.>-]+\s*=/.test(first)
}
