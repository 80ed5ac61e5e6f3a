/** How `run` and `check` end when something is in the way: the exit code, and the words that say it. */
import { assert } from "vitest"
import { type Config, parseLogs, runOnceover } from "./onceover.ts"

const FATAL = 60
/** "at Object.<anonymous> (file:///...:1:2)", raw or inside a JSON text. */
const STACK = /(^|\n|\\n)\s+at \S+ ?.*:\d+:\d+/

export interface Ending {
  readonly code: number | null
  /** run: the fatal lines of the log. check: the problems of the report. */
  readonly said: ReadonlyArray<string>
  readonly output: string
}

export const endOfRun = async (config: Config, args: ReadonlyArray<string> = ["run"]): Promise<Ending> => {
  const { code, output } = await runOnceover({ config, args })
  assert.notMatch(output, STACK)
  return { code, output, said: parseLogs(output).filter(({ level }) => level === FATAL).map(({ msg }) => msg ?? "") }
}

export const endOfCheck = async (config: Config): Promise<Ending> => {
  const { code, output } = await runOnceover({ config, args: ["check"] })
  assert.notMatch(output, STACK)
  const said = [...output.matchAll(/^\s*problem\s+(.*)$/gm)].map(([, words]) => words as string)
  return { code, output, said }
}

/** Both commands end with 1 and exactly one line, and both lines match. */
export const assertBothSay = async (config: Config, words: RegExp): Promise<void> => {
  for (const end of [endOfRun, endOfCheck]) {
    const { code, output, said } = await end(config)
    assert.strictEqual(code, 1, output)
    assert.strictEqual(said.length, 1, output)
    assert.match(said[0] as string, words)
    assert.notMatch(output, /is started again/)
  }
}
