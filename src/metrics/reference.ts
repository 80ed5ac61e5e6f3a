/** docs/metrics.md as text, made from the table of instruments; scripts/docs.ts writes it. */
import { type Instrument, INSTRUMENTS } from "./instruments.ts"

const row = ([name, i]: readonly [string, Instrument]): string =>
  `| \`${name}\` | ${i.kind} | ${["flow", ...i.labels].map((label) => `\`${label}\``).join(", ")} | ${
    i.only === null ? "both" : i.only
  } | ${i.help} |`

/** The whole page. */
export const metricsReference = (): string =>
  `# Metrics

<!-- Made by npm run docs from src/metrics. Do not edit. -->

\`GET /metrics\` gives Prometheus text. Counters end in \`_total\` and start at 0 with the process; times are in seconds. The
label \`topic\` is the target's name of a topic, as in MirrorMaker 2. An instrument that belongs to one mode (share or
consumer group) is not registered for a flow of the other. A partition that goes to
another member loses its lag here; its counters stay.

Latency and age: a batch counts with all its records, half at the time of its oldest record and half at the time of its
newest. Counts are exact, quantiles are right to within one batch. Acknowledge times count once for each record.

| metric | kind | labels | mode | meaning |
|---|---|---|---|---|
${Object.entries<Instrument>(INSTRUMENTS).map(row).join("\n")}

The process itself:

| metric | kind | meaning |
|---|---|---|
| \`onceover_build_info\` | gauge | 1; the label \`version\` is onceover's |
| \`process_resident_memory_bytes\` | gauge | resident memory |
| \`process_cpu_seconds_total\` | counter | user and system processor time |
| \`nodejs_eventloop_delay_seconds\` | gauge | 99th percentile of the event loop's delay since the last reading |
`
