/** The commands by name: the table that the parser and the help are made from. */

export interface OptionInfo {
  /** The placeholder of its value; null: it takes none. */
  readonly value: string | null
  readonly text: string
}
export interface CommandInfo {
  readonly argument: string | null
  readonly text: string
  readonly options: Readonly<Record<string, OptionInfo>>
}

const JSON_OPTION: OptionInfo = { value: null, text: "print one JSON document" }

export const COMMANDS = {
  run: {
    argument: "FILE",
    text: "mirror: run every flow of the configuration until SIGINT or SIGTERM",
    options: {
      "until-caught-up": {
        value: null,
        text: "end when everything the source had at the start is mirrored and acknowledged"
      }
    }
  },
  check: {
    argument: "FILE",
    text: "connect and say what would run, with which guarantee and why; change nothing",
    options: { json: JSON_OPTION }
  },
  status: {
    argument: null,
    text: "show the live state of a running service",
    options: { url: { value: "URL", text: "where it listens (http://127.0.0.1:8080)" }, json: JSON_OPTION }
  }
} as const satisfies Readonly<Record<string, CommandInfo>>

export type CommandName = keyof typeof COMMANDS

const columns = (rows: ReadonlyArray<readonly [string, string]>): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n")
}

/** "run FILE [--until-caught-up]" */
const signature = (name: CommandName): string => {
  const { argument, options } = COMMANDS[name]
  const flags = Object.entries<OptionInfo>(options).map(([option, { value }]) =>
    value === null ? ` [--${option}]` : ` [--${option} ${value}]`
  )
  return `${name}${argument === null ? "" : ` ${argument}`}${flags.join("")}`
}

const optionRows = (name: CommandName): ReadonlyArray<readonly [string, string]> =>
  Object.entries<OptionInfo>(COMMANDS[name].options).map((
    [option, info]
  ) => [info.value === null ? `--${option}` : `--${option} ${info.value}`, info.text])

const EXIT_CODES = columns([
  ["0", "done"],
  ["1", "failed at run time"],
  ["2", "the command line or the configuration is wrong"]
])

/** The help of one command, or of the program. */
export const helpText = (of: CommandName | null): string => {
  if (of !== null) {
    return `onceover ${signature(of)}\n\n${COMMANDS[of].text}\n\nOptions:\n${
      columns([...optionRows(of), ["--help", "this text"]])
    }\n`
  }
  const names = Object.keys(COMMANDS) as ReadonlyArray<CommandName>
  const commands = columns(names.map((name) => [signature(name), COMMANDS[name].text] as const))
  const options = columns([["--help", "this text; behind a command, its options"], ["--version", "the version"]])
  return `onceover mirrors Kafka clusters, every record exactly once\n\nUsage: onceover COMMAND [OPTIONS]\n\nCommands:\n${commands}\n\nOptions:\n${options}\n\nExit codes:\n${EXIT_CODES}\n`
}
