/**
 * The command line as a value. On node:util's parseArgs: a handful of commands needs no library, and every error is one
 * line of ours.
 *
 * Guarantee: total; whatever is not a command line of ours is a UsageError (exit code 2) that names what is allowed.
 */
import { Schema } from "effect"
import { parseArgs } from "node:util"
import { nearest } from "../config/nearest.ts"
import type { VerifyOptions } from "../mirror/verify/options.ts"
import { COMMANDS, type CommandName, type OptionInfo } from "./commands.ts"
import { type OffsetsLine, parseOffsets } from "./offsetsLine.ts"
import { verifyOptions } from "./verifyArguments.ts"

export type CommandLine =
  | { readonly command: "help"; readonly of: CommandName | null }
  | { readonly command: "version" }
  | { readonly command: "run"; readonly file: string; readonly untilCaughtUp: boolean }
  | { readonly command: "check"; readonly file: string; readonly json: boolean }
  | OffsetsLine
  | { readonly command: "status"; readonly url: URL; readonly json: boolean; readonly watch: boolean }
  | { readonly command: "verify"; readonly file: string; readonly options: VerifyOptions; readonly json: boolean }
  | {
    readonly command: "import-mm2"
    readonly file: string
    readonly out: string | null
    readonly takeOver: boolean
  }

export class UsageError extends Schema.TaggedError<UsageError>()("UsageError", { what: Schema.String }) {
  override get message(): string {
    return this.what
  }
}

type Parsed = CommandLine | UsageError
const usage = (what: string): UsageError => new UsageError({ what: `${what} (onceover --help shows what is allowed)` })

const names = Object.keys(COMMANDS) as ReadonlyArray<CommandName>
const isCommand = (word: string): word is CommandName => Object.hasOwn(COMMANDS, word)
const guess = (
  word: string,
  known: ReadonlyArray<string>,
  shown: (name: string) => string = (name) => name
): string => {
  const found = nearest(word, known)
  return found === null ? "" : `; did you mean "${shown(found)}"?`
}

export const DEFAULT_URL = "http://127.0.0.1:8080"

const parseUrl = (text: string): URL | null => {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`)
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") ? url : null
}

const build = (
  command: CommandName,
  values: Readonly<Record<string, string | boolean | undefined>>,
  words: ReadonlyArray<string>
): Parsed => {
  if (command === "status") {
    if (words.length > 0) return usage(`status takes no argument, but got "${words[0]}"; the address goes behind --url`)
    const text = typeof values["url"] === "string" ? values["url"] : DEFAULT_URL
    const url = parseUrl(text)
    return url === null
      ? usage(`--url is "${text}"; allowed: http://HOST:PORT`)
      : { command, url, json: values["json"] === true, watch: values["watch"] === true }
  }
  if (command === "offsets") {
    const line = parseOffsets(values, words)
    return typeof line === "string" ? usage(line) : line
  }
  const [file, extra] = words
  if (file === undefined || file === "") {
    return usage(`${command} needs the path of a configuration file: onceover ${command} FILE`)
  }
  if (extra !== undefined) return usage(`${command} takes one configuration file, but got "${extra}" too`)
  switch (command) {
    case "run":
      return { command, file, untilCaughtUp: values["until-caught-up"] === true }
    case "check":
      return { command, file, json: values["json"] === true }
    case "import-mm2":
      return {
        command,
        file,
        out: typeof values["out"] === "string" ? values["out"] : null,
        takeOver: values["take-over"] === true
      }
    case "verify": {
      const options = verifyOptions(values)
      return typeof options === "string" ? usage(options) : { command, file, options, json: values["json"] === true }
    }
  }
}

interface Token {
  readonly kind: string
  readonly name?: string
  readonly rawName?: string
  readonly value?: string | boolean | undefined
  /** --name=value */
  readonly inlineValue?: boolean | undefined
}

/** The first token that the command does not take. */
const wrongToken = (command: CommandName, tokens: ReadonlyArray<Token>): UsageError | null => {
  const options: Readonly<Record<string, OptionInfo>> = COMMANDS[command].options
  for (const token of tokens) {
    if (token.kind !== "option" || token.name === undefined) continue
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (option === undefined) {
      return usage(
        `${command} has no option ${token.rawName}${
          guess(token.name, [...Object.keys(options), "help"], (name) => `--${name}`)
        }`
      )
    }
    const given = token.value !== undefined
    if (option.value === null && given) return usage(`--${token.name} takes no value`)
    // An option where a value should be is a forgotten value.
    const forgotten = !given || token.value === "" ||
      (token.inlineValue === false && String(token.value).startsWith("-"))
    if (option.value !== null && forgotten) {
      return usage(`--${token.name} needs a value: --${token.name} ${option.value}`)
    }
  }
  return null
}

const parseCommand = (command: CommandName, args: ReadonlyArray<string>): Parsed => {
  const options = Object.fromEntries(
    Object.entries<OptionInfo>(COMMANDS[command].options).map((
      [name, option]
    ) => [name, { type: option.value === null ? "boolean" as const : "string" as const }])
  )
  const { tokens, values, positionals } = parseArgs({
    args: [...args],
    options,
    allowPositionals: true,
    strict: false,
    tokens: true
  })
  if (tokens.some((token) => token.kind === "option" && (token.name === "help" || token.name === "h"))) {
    return { command: "help", of: command }
  }
  return wrongToken(command, tokens) ?? build(command, values, positionals)
}

/** Reads what stands behind the program's name. */
export const parseCommandLine = (args: ReadonlyArray<string>): Parsed => {
  const [first, ...rest] = args
  if (first === undefined) return usage(`no command given; allowed: ${names.join(", ")}`)
  if (first === "--help" || first === "-h" || first === "help") {
    const [of] = rest
    return { command: "help", of: of !== undefined && isCommand(of) ? of : null }
  }
  if (first === "--version" || first === "-V" || first === "version") return { command: "version" }
  if (isCommand(first)) return parseCommand(first, rest)
  if (first.startsWith("-")) {
    return usage(
      `there is no option ${first}${guess(first.replace(/^-+/, ""), ["help", "version"], (name) => `--${name}`)}`
    )
  }
  return usage(`there is no command "${first}"; allowed: ${names.join(", ")}${guess(first, names)}`)
}
