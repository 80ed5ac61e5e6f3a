/** The plain way with librdkafka: bench/recordByRecord.ts as a process. Its topics have one name on each side, so one topic only. */
import { join } from "node:path"
import { projectRoot } from "../../test/kit/paths.ts"
import { type Peer, targetTopic } from "./peer.ts"

export const recordByRecord: Peer = {
  name: "librdkafka, record by record",
  id: "plain",
  transform: false,
  fresh: true,
  start: (job) => {
    const [topic = ""] = job.topics
    const child = job.session.spawn(process.execPath, [
      join(projectRoot, "bench/recordByRecord.ts"),
      job.source.bootstrap,
      job.target.bootstrap,
      topic,
      targetTopic(job.run, topic),
      job.shape.codec
    ])
    return Promise.resolve({
      pid: child.pid,
      running: child.running,
      output: child.output,
      stop: () => child.stop("SIGTERM")
    })
  }
}
