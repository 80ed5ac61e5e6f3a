import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type CommandLine, parseCommandLine, UsageError } from "../../src/cli/commandLine.ts"
import { COMMANDS, helpText } from "../../src/cli/commands.ts"

const ALL = Object.keys(COMMANDS).join(", ")

describe("a command line", () => {
  const right: ReadonlyArray<readonly [args: ReadonlyArray<string>, line: CommandLine]> = [
    [["run", "f.yaml"], { command: "run", file: "f.yaml", untilCaughtUp: false }],
    [["run", "f.yaml", "--until-caught-up"], { command: "run", file: "f.yaml", untilCaughtUp: true }],
    [["run", "--until-caught-up", "f.yaml"], { command: "run", file: "f.yaml", untilCaughtUp: true }],
    [["run", "--", "--strange"], { command: "run", file: "--strange", untilCaughtUp: false }],
    [["check", "f.yaml", "--json"], { command: "check", file: "f.yaml", json: true }],
    [["status"], { command: "status", url: new URL("http://127.0.0.1:8080"), json: false, watch: false }],
    [["status", "--url", "10.0.0.1:9"], {
      command: "status",
      url: new URL("http://10.0.0.1:9"),
      json: false,
      watch: false
    }],
    [["status", "--watch"], { command: "status", url: new URL("http://127.0.0.1:8080"), json: false, watch: true }],
    [["status", "--url=https://h/x/", "--json"], {
      command: "status",
      url: new URL("https://h/x/"),
      json: true,
      watch: false
    }],
    [["import-mm2", "mm2.properties"], { command: "import-mm2", file: "mm2.properties", out: null, takeOver: false }],
    [["import-mm2", "mm2.properties", "--out", "f.yaml", "--take-over"], {
      command: "import-mm2",
      file: "mm2.properties",
      out: "f.yaml",
      takeOver: true
    }],
    [["verify", "f.yaml", "--json"], {
      command: "verify",
      file: "f.yaml",
      json: true,
      options: { flow: null, topics: null, from: null, to: null, sample: null }
    }],
    [
      ["verify", "f", "--flow", "a->b", "--topics", "x.*", "--from", "7", "--to", "2026-01-31T12:00:00Z", "--sample=3"],
      {
        command: "verify",
        file: "f",
        json: false,
        options: {
          flow: "a->b",
          topics: /^(?:x.*)$/,
          from: { offset: 7 },
          to: { timeMs: Date.UTC(2026, 0, 31, 12) },
          sample: 3
        }
      }
    ],
    [["--help"], { command: "help", of: null }],
    [["-h"], { command: "help", of: null }],
    [["help", "run"], { command: "help", of: "run" }],
    [["run", "--help"], { command: "help", of: "run" }],
    [["run", "a", "b", "--what", "-h"], { command: "help", of: "run" }],
    [["--version"], { command: "version" }]
  ]
  for (const [args, line] of right) {
    it(`${args.join(" ")} is understood`, () => assert.deepStrictEqual(parseCommandLine(args), line))
  }

  const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, words: string]> = [
    [[], `no command given; allowed: ${ALL}`],
    [
      ["rnu", "f"],
      `there is no command "rnu"; allowed: ${ALL}; did you mean "run"?`
    ],
    [["--hlep"], "there is no option --hlep; did you mean \"--help\"?"],
    [["run"], "run needs the path of a configuration file: onceover run FILE"],
    [["run", ""], "run needs the path of a configuration file: onceover run FILE"],
    [["run", "a", "b"], "run takes one configuration file, but got \"b\" too"],
    [["run", "a", "--until-cought-up"], "run has no option --until-cought-up; did you mean \"--until-caught-up\"?"],
    [["run", "a", "--json"], "run has no option --json"],
    [["run", "a", "-x"], "run has no option -x"],
    [["check", "a", "--json=yes"], "--json takes no value"],
    [
      ["verify", "f", "--from", "soon"],
      "--from is \"soon\"; allowed: an offset of the source, or a time as 2026-01-31 or 2026-01-31T12:00:00Z"
    ],
    [
      ["verify", "f", "--to", "2026-13-45"],
      "--to is \"2026-13-45\"; allowed: an offset of the source, or a time as 2026-01-31 or 2026-01-31T12:00:00Z"
    ],
    [["verify", "f", "--topics", "("], "--topics \"(\" is not a regular expression (Unterminated group)"],
    [["verify", "f", "--sample", "0"], "--sample is \"0\"; allowed: a number of partitions of each topic, 1 or more"],
    [["import-mm2"], "import-mm2 needs the path of a configuration file: onceover import-mm2 FILE"],
    [["status", "here"], "status takes no argument, but got \"here\"; the address goes behind --url"],
    [["status", "--url"], "--url needs a value: --url URL"],
    [["status", "--url", "--json"], "--url needs a value: --url URL"],
    [["status", "--url", "ftp://x"], "--url is \"ftp://x\"; allowed: http://HOST:PORT"]
  ]
  for (const [args, words] of wrong) {
    it(`"${args.join(" ")}" is refused: ${words}`, () => {
      const error = parseCommandLine(args)
      assert.instanceOf(error, UsageError)
      assert.strictEqual(error.message, `${words} (onceover --help shows what is allowed)`)
    })
  }

  it("never throws, and an error is always one line", () => {
    const word = fc.oneof(
      fc.constantFrom("run", "check", "status", "--json", "--url", "--", "-", "--help", "--=", "--__proto__", "f"),
      fc.string()
    )
    fc.assert(fc.property(fc.array(word), (args) => {
      const line = parseCommandLine(args.map((arg) => arg.replaceAll("\n", " ")))
      if (line instanceof UsageError) assert.notInclude(line.message, "\n")
    }))
  })
})

describe("the help", () => {
  it("names every command and every option of it", () => {
    const all = helpText(null)
    for (const name of Object.keys(COMMANDS) as ReadonlyArray<keyof typeof COMMANDS>) {
      assert.include(all, `  ${name}`)
      for (const option of Object.keys(COMMANDS[name].options)) assert.include(helpText(name), `--${option}`)
    }
  })
})
