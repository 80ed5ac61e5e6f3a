import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type CommandLine, parseCommandLine, UsageError } from "../../src/cli/commandLine.ts"
import { COMMANDS, helpText } from "../../src/cli/commands.ts"

describe("a command line", () => {
  const right: ReadonlyArray<readonly [args: ReadonlyArray<string>, line: CommandLine]> = [
    [["run", "f.yaml"], { command: "run", file: "f.yaml", untilCaughtUp: false }],
    [["run", "f.yaml", "--until-caught-up"], { command: "run", file: "f.yaml", untilCaughtUp: true }],
    [["run", "--until-caught-up", "f.yaml"], { command: "run", file: "f.yaml", untilCaughtUp: true }],
    [["run", "--", "--strange"], { command: "run", file: "--strange", untilCaughtUp: false }],
    [["check", "f.yaml", "--json"], { command: "check", file: "f.yaml", json: true }],
    [["status"], { command: "status", url: new URL("http://127.0.0.1:8080"), json: false }],
    [["status", "--url", "10.0.0.1:9"], { command: "status", url: new URL("http://10.0.0.1:9"), json: false }],
    [["status", "--url=https://h/x/", "--json"], { command: "status", url: new URL("https://h/x/"), json: true }],
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
    [[], "no command given; allowed: run, check, status"],
    [["rnu", "f"], "there is no command \"rnu\"; allowed: run, check, status; did you mean \"run\"?"],
    [["--hlep"], "there is no option --hlep; did you mean \"--help\"?"],
    [["run"], "run needs the path of a configuration file: onceover run FILE"],
    [["run", ""], "run needs the path of a configuration file: onceover run FILE"],
    [["run", "a", "b"], "run takes one configuration file, but got \"b\" too"],
    [["run", "a", "--until-cought-up"], "run has no option --until-cought-up; did you mean \"--until-caught-up\"?"],
    [["run", "a", "--json"], "run has no option --json"],
    [["run", "a", "-x"], "run has no option -x"],
    [["check", "a", "--json=yes"], "--json takes no value"],
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
