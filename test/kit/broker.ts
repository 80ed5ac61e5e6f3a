/** One broker process: started on a data folder that stays across restarts, killed with any signal. */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, existsSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { projectRoot } from "./paths.ts"

export interface BrokerSpec {
  /** The folder of scripts/kafka-jars.sh: libs, formatted, perhaps broker.jsa. */
  readonly kafka: string
  /** Further options for Java; they come last. */
  readonly jvm: ReadonlyArray<string>
  readonly propertiesFile: string
  readonly logFile: string
  readonly old: boolean
}

export interface Broker {
  readonly pid: () => number | undefined
  readonly running: () => boolean
  readonly start: () => void
  /** Sends the signal; for those that end a process, waits until it has ended. */
  readonly signal: (signal: NodeJS.Signals) => Promise<void>
  /** The last lines of its log. */
  readonly logTail: (lines?: number) => string
}

const javaCommand = (): string => process.env["JAVA_HOME"] ? join(process.env["JAVA_HOME"], "bin/java") : "java"

/** Made for a quick start on a small machine: broker.jsa (scripts/kafka-archive.ts) alone saves two fifths of its processor time. */
const javaArguments = (spec: BrokerSpec): ReadonlyArray<string> => {
  const archive = join(spec.kafka, "broker.jsa")
  const logging = spec.old
    ? `-Dlog4j.configuration=file:${join(projectRoot, "test/kit/log4j.properties")}`
    : `-Dlog4j2.configurationFile=${join(projectRoot, "test/kit/log4j2.properties")}`
  return [
    "-Xmx512m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    ...(existsSync(archive) ? ["-Xshare:auto", `-XX:SharedArchiveFile=${archive}`] : []),
    logging,
    ...spec.jvm,
    "-cp",
    `${spec.kafka}/libs/*`,
    "kafka.Kafka",
    spec.propertiesFile
  ]
}

const ends = (signal: NodeJS.Signals): boolean => signal !== "SIGSTOP" && signal !== "SIGCONT"

export const makeBroker = (spec: BrokerSpec, onChange: () => void): Broker => {
  let child: ChildProcess | undefined
  let ended: Promise<void> = Promise.resolve()
  const running = () => child !== undefined && child.exitCode === null && child.signalCode === null
  return {
    pid: () => running() ? child?.pid : undefined,
    running,
    start: () => {
      if (running()) return
      const log = openSync(spec.logFile, "a")
      // A process group of its own: Ctrl-C in a terminal reaches the test, which then ends its brokers in order.
      const started = spawn(javaCommand(), javaArguments(spec), { detached: true, stdio: ["ignore", log, log] })
      closeSync(log)
      started.unref()
      child = started
      ended = new Promise<void>((resolve) => {
        started.once("error", () => resolve())
        started.once("exit", () => resolve())
      }).then(onChange)
      onChange()
    },
    signal: async (signal) => {
      if (child === undefined || !running()) return
      child.kill(signal)
      if (!ends(signal)) return
      // An unref'd child alone would let the process end before the answer comes.
      child.ref()
      await ended
    },
    logTail: (lines = 40) =>
      existsSync(spec.logFile) ? readFileSync(spec.logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n") : ""
  }
}
