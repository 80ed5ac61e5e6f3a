/** The arguments of `onceover offsets` as a question. */
import type { OffsetsQuestion, OffsetsRequest } from "../mirror/offsetsService.ts"

export interface OffsetsLine {
  readonly command: "offsets"
  readonly file: string
  readonly json: boolean
  readonly request: OffsetsRequest
}

type Values = Readonly<Record<string, string | boolean | undefined>>

const textOf = (values: Values, name: string): string | null => {
  const value = values[name]
  return typeof value === "string" ? value : null
}

/** A whole number, or a sentence. */
const numberOf = (values: Values, name: string, otherwise: number | null): number | string => {
  const text = textOf(values, name)
  if (text === null) return otherwise ?? `translate needs --${name} N`
  const number = Number(text)
  return /^\d+$/.test(text) && Number.isSafeInteger(number)
    ? number
    : `--${name} is "${text}"; allowed: a whole number from 0`
}

const misplaced = (values: Values, names: ReadonlyArray<string>, where: string): string | null => {
  const given = names.find((name) => values[name] !== undefined && values[name] !== false)
  return given === undefined ? null : `--${given} ${where}`
}

const question = (action: string, values: Values): OffsetsQuestion | string => {
  const group = textOf(values, "group")
  if (action === "list") {
    const wrong = misplaced(
      values,
      ["topic", "partition", "offset", "reverse", "commit"],
      "belongs to offsets translate"
    )
    return wrong ?? { kind: "list", group }
  }
  const reverse = values["reverse"] === true
  if (group !== null) {
    const wrong = misplaced(values, ["topic", "partition", "offset"], "does not go with --group")
    return wrong ?? { kind: "group", group, reverse, commit: values["commit"] === true }
  }
  const topic = textOf(values, "topic")
  if (topic === null) return "translate needs --group GROUP, or --topic TOPIC with --offset N"
  const wrong = misplaced(values, ["commit"], "needs --group")
  if (wrong !== null) return wrong
  const partition = numberOf(values, "partition", 0)
  const offset = numberOf(values, "offset", null)
  if (typeof partition === "string") return partition
  return typeof offset === "string" ? offset : { kind: "position", topic, partition, offset, reverse }
}

/** What is asked, or what is wrong with it. */
export const parseOffsets = (values: Values, words: ReadonlyArray<string>): OffsetsLine | string => {
  const [action, file, extra] = words
  if (action !== "list" && action !== "translate") {
    return `offsets needs list or translate${action === undefined ? "" : `, but got "${action}"`}`
  }
  if (file === undefined || file === "") return `offsets ${action} needs the path of a configuration file`
  if (extra !== undefined) return `offsets ${action} takes one configuration file, but got "${extra}" too`
  const asked = question(action, values)
  if (typeof asked === "string") return asked
  return {
    command: "offsets",
    file,
    json: values["json"] === true,
    request: { flow: textOf(values, "flow"), question: asked }
  }
}
