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
  verify: {
    argument: "FILE",
    text: "compare source and target by content, partition by partition; name what is lost, doubled or altered",
    options: {
      flow: { value: "NAME", text: "this flow only" },
      topics: { value: "RE", text: "source topics that match this regular expression in whole" },
      from: { value: "AT", text: "from an offset of the source, or a time (2026-01-31T12:00:00Z)" },
      to: { value: "AT", text: "up to an offset of the source, or a time; not included" },
      sample: { value: "N", text: "only N partitions of each topic, chosen by chance" },
      json: JSON_OPTION
    }
  },
  offsets: {
    argument: "list|translate FILE",
    text: "say where offsets of the source are on the target, of groups or of one position",
    options: {
      group: { value: "GROUP", text: "the group; list shows all without it" },
      topic: { value: "TOPIC", text: "translate: a topic of the source (of the target with --reverse) ..." },
      partition: { value: "N", text: "... its partition (0) ..." },
      offset: { value: "N", text: "... and the next offset that is wanted there" },
      reverse: { value: null, text: "translate: from the target back to the source" },
      commit: {
        value: null,
        text: "translate --group: write the offsets there, if the group has no members and is not further already"
      },
      flow: { value: "NAME", text: "the flow, where the configuration has more than one" },
      json: JSON_OPTION
    }
  },
  status: {
    argument: null,
    text: "show the live state of a running service",
    options: {
      url: { value: "URL", text: "where it listens (http://127.0.0.1:8080)" },
      watch: { value: null, text: "show it again and again, until Ctrl+C" },
      json: { value: null, text: "print one JSON document; with --watch one a line" }
    }
  },
  "import-mm2": {
    argument: "FILE",
    text: "turn a MirrorMaker 2 properties file into a configuration, with comments that say what changed and why",
    options: {
      out: { value: "PATH", text: "write it there instead of to standard output" },
      "take-over": {
        value: null,
        text: "also set the flows' groups on the source to where MirrorMaker stopped (run FILE does that by itself)"
      }
    }
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
  ["1", "failed at run time; verify: not equal"],
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
