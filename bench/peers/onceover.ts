/** onceover as its users start it: bin/onceover run FILE, a fresh process each time. Its defaults, but where told. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { projectRoot } from "../../test/kit/paths.ts"
import { type Job, type Peer, topicPattern, TRANSFORM_HEADER, TRANSFORM_VALUE } from "./peer.ts"

export interface OnceoverOptions {
  readonly mode: "share" | "consumer"
  readonly guarantee?: "exactly-once" | "at-least-once"
  readonly transform?: boolean
  /** Keys of the flow that win. */
  readonly flow?: Readonly<Record<string, unknown>>
  readonly name?: string
}

const configuration = (job: Job, options: OnceoverOptions) => ({
  clusters: {
    [job.run]: { "bootstrap.servers": job.source.bootstrap },
    target: { "bootstrap.servers": job.target.bootstrap }
  },
  flows: [{
    // A name of its own: the ledger of a flow knows what was mirrored before, whatever the group.
    name: job.run,
    source: job.run,
    target: "target",
    topics: [topicPattern(job.shape)],
    "group.id": job.run,
    "group.protocol": options.mode,
    "delivery.guarantee": options.guarantee ?? "exactly-once",
    "exactly.once.fallback": "fail",
    ...(options.transform === true
      ? {
        transforms: ["origin"],
        "transforms.origin.type": "InsertHeader",
        "transforms.origin.header": TRANSFORM_HEADER,
        "transforms.origin.value.literal": TRANSFORM_VALUE
      }
      : {}),
    ...options.flow
  }],
  http: { listen: false },
  log: { level: "warn" }
})

export const onceover = (options: OnceoverOptions): Peer => {
  const guarantee = options.guarantee ?? "exactly-once"
  const transform = options.transform ?? false
  return {
    name: options.name ?? `onceover, ${options.mode} mode, ${guarantee}${transform ? ", transform" : ""}`,
    id: `${options.mode}-${guarantee}${transform ? "-transform" : ""}`,
    transform,
    fresh: true,
    start: (job) => {
      const file = join(job.session.folder, `${job.run}.json`)
      writeFileSync(file, JSON.stringify(configuration(job, options)))
      const child = job.session.spawn(join(projectRoot, "bin/onceover"), ["run", file])
      return Promise.resolve({
        pid: child.pid,
        running: child.running,
        output: child.output,
        stop: () => child.stop("SIGTERM")
      })
    }
  }
}
