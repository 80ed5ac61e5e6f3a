/**
 * Kafka's own definitions of its messages, read out of its client's jar (common/message/*.json), with names of shared
 * structs resolved. They are the truth that src/wire/messages is held against; none of them is in this repository.
 */
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { projectRoot, versions } from "./paths.ts"
import { readZip } from "./zip.ts"

/** A field as Kafka writes it. Only what matters for bytes and defaults. */
export interface JsonField {
  readonly name: string
  readonly type: string
  readonly versions: string
  readonly nullableVersions?: string
  readonly taggedVersions?: string
  readonly flexibleVersions?: string
  readonly tag?: number
  readonly default?: string | number | boolean
  readonly ignorable?: boolean
  readonly fields?: ReadonlyArray<JsonField>
}

export interface JsonMessage {
  readonly apiKey: number
  readonly type: "request" | "response"
  readonly name: string
  readonly validVersions: string
  readonly flexibleVersions: string
  readonly latestVersionUnstable?: boolean
  readonly commonStructs?: ReadonlyArray<{ readonly name: string; readonly fields: ReadonlyArray<JsonField> }>
  readonly fields: ReadonlyArray<JsonField>
}

/** The client's jar of the pinned version: the project's own copy, or the one in Maven's folder. */
export const clientsJar = (version: string = versions.kafka): string => {
  const jar = `kafka-clients-${version}.jar`
  const places = [
    join(projectRoot, ".tools/kafka", version, "libs", jar),
    join(projectRoot, ".tools/kafka", version, jar),
    join(homedir(), ".m2/repository/org/apache/kafka/kafka-clients", version, jar)
  ]
  const found = places.find((place) => existsSync(place))
  if (found === undefined) {
    throw new Error(`${jar} is in none of ${places.join(", ")}: run npm run setup, which fetches it`)
  }
  return found
}

/** Kafka's JSON has whole lines of comments. */
const parse = (text: string): JsonMessage => JSON.parse(text.replaceAll(/^\s*\/\/.*$/gm, "")) as JsonMessage

const withStructs = (fields: ReadonlyArray<JsonField>, message: JsonMessage): ReadonlyArray<JsonField> =>
  fields.map((field) => {
    const shared = message.commonStructs?.find((struct) => struct.name === field.type.replace("[]", ""))
    const inner = field.fields ?? shared?.fields
    return inner === undefined ? field : { ...field, fields: withStructs(inner, message) }
  })

/** Every request and response, by name ("FetchRequest"). */
export const kafkaMessages = (): ReadonlyMap<string, JsonMessage> => {
  const files = readZip(clientsJar(), (name) => /^common\/message\/\w+(Request|Response)\.json$/.test(name))
  // Messages that Kafka has removed are still there, without versions or fields.
  const messages = [...files.values()].map((bytes) => parse(bytes.toString("utf8"))).filter((message) =>
    message.validVersions !== "none"
  )
  return new Map(
    messages.map((message) => [message.name, { ...message, fields: withStructs(message.fields, message) }])
  )
}
