/** MirrorMaker 2 in its dedicated mode, a fresh process each time. */
import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { projectRoot, versions } from "../../test/kit/paths.ts"
import {
  asProperties,
  connectorTuning,
  consumerTuning,
  MIRROR_MAKER_JVM,
  prefixed,
  producerTuning
} from "./mirrorMakerSettings.ts"
import { type Job, type Peer, topicPattern, TRANSFORM_HEADER, TRANSFORM_VALUE } from "./peer.ts"

export const javaCommand = (): string => process.env["JAVA_HOME"] ? join(process.env["JAVA_HOME"], "bin/java") : "java"

/** Of the brokers' jars: without a binding Connect is silent, also when it fails. */
const loggingJars = (): ReadonlyArray<string> => {
  const libs = join(projectRoot, ".tools/kafka", versions.kafka, "libs")
  return ["log4j-api", "log4j-core", "log4j-slf4j-impl"].map((name) => join(libs, `${name}-${versions.log4j}.jar`))
}

export const loggingOption = `-Dlog4j2.configurationFile=${join(projectRoot, "bench/peers/log4j2.properties")}`

let found: string | undefined
/** The class path of MirrorMaker; brought by Maven when it is not there. */
export const mirrorMakerJars = (): string => {
  found ??= execFileSync(join(projectRoot, "scripts/mirror-maker-jars.sh"), { timeout: 600_000, encoding: "utf8" })
    .trim()
  return [join(found, "*"), ...loggingJars()].join(":")
}

const ONE_REPLICA = Object.fromEntries(
  [
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor"
  ].map((name) => [name, "1"])
)

/** Connect has no converter for a text header among bytes: the one that writes text as text is named. */
export const connectTransform: Readonly<Record<string, string>> = {
  "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
  transforms: "origin",
  "transforms.origin.type": "org.apache.kafka.connect.transforms.InsertHeader",
  "transforms.origin.header": TRANSFORM_HEADER,
  "transforms.origin.value.literal": TRANSFORM_VALUE
}

export interface MirrorMakerOptions {
  /** false: MirrorMaker's own defaults, but for what one broker needs. */
  readonly tuned: boolean
  readonly transform?: boolean
}

const properties = (job: Job, { transform = false, tuned }: MirrorMakerOptions): Readonly<Record<string, string>> => {
  const { run, shape } = job
  return {
    clusters: `${run}, target`,
    [`${run}.bootstrap.servers`]: job.source.bootstrap,
    "target.bootstrap.servers": job.target.bootstrap,
    [`${run}->target.enabled`]: "true",
    [`${run}->target.topics`]: topicPattern(shape),
    ...ONE_REPLICA,
    ...(tuned
      ? {
        ...connectorTuning(shape.partitions * shape.topics),
        ...prefixed(`${run}.consumer.`, consumerTuning),
        ...prefixed("target.producer.", producerTuning(shape.codec)),
        "target.offset.flush.timeout.ms": "10000"
      }
      // MirrorMaker refuses to start when its offset syncs are off and this is set.
      : { "offset-syncs.topic.replication.factor": "1" }),
    // Without the flow before it MirrorMaker forgets what belongs to a transform.
    ...(transform ? prefixed(`${run}->target.`, connectTransform) : {})
  }
}

export const mirrorMaker = (options: MirrorMakerOptions): Peer => ({
  name: `MirrorMaker 2, ${options.tuned ? "tuned" : "its defaults"}${options.transform === true ? ", transform" : ""}`,
  id: `mm2${options.tuned ? "" : "-defaults"}${options.transform === true ? "-transform" : ""}`,
  transform: options.transform ?? false,
  fresh: true,
  start: (job) => {
    const file = join(job.session.folder, `${job.run}.properties`)
    writeFileSync(file, asProperties(properties(job, options)))
    const child = job.session.spawn(javaCommand(), [
      ...MIRROR_MAKER_JVM,
      loggingOption,
      "-cp",
      mirrorMakerJars(),
      "org.apache.kafka.connect.mirror.MirrorMaker",
      file
    ])
    return Promise.resolve({
      pid: child.pid,
      running: child.running,
      output: child.output,
      // It may take half a minute to leave; what it has written is there.
      stop: () => child.stop("SIGKILL")
    })
  }
})
