/** docs/configuration.md as text, made from the tables that the reading itself uses; scripts/docs.ts writes it. */
import { controlSettings } from "./controlSettings.ts"
import { errorSettings, flowSettings, guaranteeSettings, naming, readSettings, topicSettings } from "./flowSettings.ts"
import { FIXED, KAFKA_SETTINGS, LIBRDKAFKA, RESERVED, whyUnsupported, WORDS } from "./kafkaSettings.ts"
import { offsetSettings } from "./offsetSettings.ts"
import type { SettingInfo, Settings } from "./setting.ts"
import { httpSettings, logSettings, topSettings } from "./topSettings.ts"
import { PREDICATE_TYPES, TRANSFORM_TYPES, type TypeTable } from "./transforms.ts"

const defaultOf = (info: SettingInfo): string =>
  info.required ? "required" : info.fallback === null ? "none" : `default: \`${info.fallback}\``

const one = (name: string, info: SettingInfo): string =>
  `### \`${name}\`\n\n${info.text}\n\n- Type: ${info.type}, ${defaultOf(info)}\n- Allowed: ${info.allowed}\n`

const section = (title: string, settings: Settings, prefix = ""): string =>
  `## ${title}\n\n${Object.entries(settings).map(([name, { info }]) => one(`${prefix}${name}`, info)).join("\n")}`

const types = (table: TypeTable): string =>
  Object.entries(table).map(([type, params]) => {
    const list = Object.entries(params).map(([name, info]) =>
      `\`${name}\`${info.required ? "" : " (optional)"}: ${info.allowed}`
    ).join("; ")
    return `| \`${type}\` | ${list || "none"} |`
  }).join("\n")

const code = (names: Iterable<string>): string => [...names].map((name) => `\`${name}\``).join(", ")

const INTRO = `# Configuration

<!-- Made by npm run docs from src/config. Do not edit. -->

One YAML file (or JSON, which YAML contains). Whatever is wrong with it is reported at once, one line a problem with the
line in the file, and the program ends with exit code 2 before it connects to anything. \`onceover check FILE\` goes
on from there: it connects and says what would run.

\`\`\`yaml
clusters:
  east: { bootstrap.servers: "east-1:9092,east-2:9092" }
  west:
    bootstrap.servers: "west-1:9093"
    security.protocol: SASL_SSL
    sasl.mechanism: SCRAM-SHA-512
    sasl.jaas.config: \${file:/run/secrets/west.properties:sasl.jaas.config}
flows:
  - source: east
    target: west
    topics: ["orders", "payments.*"]
\`\`\`

Settings are flat, dotted keys: \`bootstrap.servers: ...\`, not \`bootstrap: { servers: ... }\`. A key that is not known is an
error that offers the nearest name. Numbers and booleans may also be written as text (\`"4"\`, \`"true"\`), words in any case.

## References

\`\${env:NAME}\` is replaced by an environment variable and \`\${file:PATH:KEY}\` by the value of a key in a Java properties
file, anywhere in a value; a relative path is relative to the folder of the configuration file. What is not found is an
error. What was put in is not looked at again. \`$\${\` stands for a plain \`\${\`. Values of secret settings (passwords, keys,
JAAS lines, tokens) are in no log, error or status.

## Patterns

\`topics\` and \`topics.exclude\` are regular expressions that match the whole name, as in MirrorMaker 2. They run in
JavaScript's dialect: what only Java has (\`\\p{...}\`, \`\\Q...\\E\`, \`\\z\`, \`&&\` in a class) is refused and never read as
something else. A leading \`(?i)\` is understood. In the form with commas, a comma inside brackets does not split.

## Clusters

\`clusters\` is a map of aliases to Kafka client settings in Kafka's names; \`bootstrap.servers\` is required. An alias is made
of letters, digits, dots, underscores and hyphens, because it becomes the prefix of topic names.

## Which group: share or consumer

Three places may say it, and the last that does wins: \`consumer.group.protocol\` at top level, \`group.protocol\` of the flow,
\`consumer.override.group.protocol\` of the flow. Each takes \`share\` or \`consumer\`; a wrong value is an error also where another
place wins. How a member of a consumer group joins (Kafka's own \`group.protocol\`: classic or KIP-848) is
\`group.membership\`. Metrics and status say which one is in force.
`

const clientSection = (): string => {
  const all = [...KAFKA_SETTINGS.values()]
  const used = (filter: (scopes: ReadonlyArray<string>) => boolean): string =>
    code(
      all.filter((s) =>
        s.ignored === null && !RESERVED.has(s.name) && whyUnsupported(s.name) === null && s.name !== "group.protocol" &&
        filter(s.scopes)
      ).map((s) => s.name)
    )
  const ignored = Map.groupBy(all.filter((s) => s.ignored !== null), (s) => s.ignored as string)
  return `## Client settings

Under a cluster, and under \`consumer.override.\`, \`producer.override.\` and \`admin.override.\` of a flow, where they win over
the cluster's for reading the source, writing to the target, and creating and describing topics. Names and values are Kafka's.
The settings of a share group itself go under \`consumer.override.\` too (\`consumer.override.share.record.lock.duration.ms\`): they are
brought into force on the source when the flow starts.

- Everywhere: ${used((scopes) => scopes.length === 3)}
- Consumer: ${used((scopes) => scopes.length < 3 && scopes.includes("consumer"))}
- Producer: ${used((scopes) => scopes.length < 3 && scopes.includes("producer"))}

Words that are checked: ${[...WORDS, ...FIXED].map(([name, words]) => `\`${name}\` (${words.join(", ")})`).join("; ")}.

Accepted and without effect, with a line in the log: ${
    [...ignored].map(([why, list]) => `${code(list.map((s) => s.name))} (${why})`).join("; ")
  }.

Refused, because they cannot work here: ${code(all.filter((s) => whyUnsupported(s.name) !== null).map((s) => s.name))}.

Refused, because onceover sets them: ${[...RESERVED].map(([name, why]) => `\`${name}\` (${why})`).join("; ")}.

Names of librdkafka that are taken for Kafka's: ${
    [...LIBRDKAFKA].map(([from, to]) => `\`${from}\` (\`${to}\`)`).join(", ")
  }.
`
}

const TRANSFORMS = `## Transforms

In Connect's style, inside a flow. A flow with transforms decodes every batch; one without passes batches through as bytes.

\`\`\`yaml
    transforms: [origin, cut]
    transforms.origin.type: InsertHeader
    transforms.origin.header: origin
    transforms.origin.value.literal: east
    transforms.cut.type: Filter
    transforms.cut.predicate: tombstones
    predicates: [tombstones]
    predicates.tombstones.type: RecordIsTombstone
\`\`\`

\`transforms.NAME.predicate\` runs the transform only where the predicate holds, with \`transforms.NAME.negate: true\` only where it
does not. Connect's class names (\`org.apache.kafka.connect.transforms.InsertHeader\`) are taken too.

| type | parameters |
|---|---|
${types(TRANSFORM_TYPES)}

| predicate | parameters |
|---|---|
${types(PREDICATE_TYPES)}
`

/** The whole page. */
export const configurationReference = (): string =>
  [
    INTRO,
    section("Flows: ends", naming),
    section("Flows: topics", topicSettings),
    section("Flows: topics that change, settings, rights, loops", controlSettings),
    section("Flows: offsets, groups, heartbeats", offsetSettings),
    section("Flows: reading the source", readSettings),
    section("Flows: guarantee", guaranteeSettings),
    section("Flows: records that fail", errorSettings),
    section("Flows: stopping", { "shutdown.timeout.ms": flowSettings["shutdown.timeout.ms"] }),
    TRANSFORMS,
    clientSection(),
    section("Top level", topSettings),
    section("HTTP", httpSettings, "http: "),
    section("Log", logSettings, "log: ")
  ].join("\n")
