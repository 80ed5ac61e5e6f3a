/**
 * MirrorMaker 2's connector in one Connect worker that stays up between runs (KIP-382 names this way of running it): the
 * throughput of many cells is measured on a JVM that has long compiled what it needs, where onceover starts anew each time.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { KafkaCluster } from "../../test/kit/kafka.ts"
import { releasePorts, takePorts } from "../../test/kit/ports.ts"
import { until } from "../../test/kit/until.ts"
import type { Child, Session } from "../session.ts"
import { connectTransform, javaCommand, loggingOption, mirrorMakerJars } from "./mirrorMaker.ts"
import {
  asProperties,
  connectorTuning,
  consumerTuning,
  MIRROR_MAKER_JVM,
  prefixed,
  producerTuning
} from "./mirrorMakerSettings.ts"
import { type Job, type Peer, topicPattern } from "./peer.ts"

interface Worker {
  readonly child: Child
  readonly url: string
  readonly port: number
}

const BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"

const startWorker = async (session: Session, target: KafkaCluster): Promise<Worker> => {
  const [port] = await takePorts(1) as [number]
  const file = join(session.folder, "worker.properties")
  writeFileSync(
    file,
    asProperties({
      "bootstrap.servers": target.bootstrap,
      "key.converter": BYTES,
      "value.converter": BYTES,
      "offset.storage.file.filename": join(session.folder, "worker.offsets"),
      "offset.flush.timeout.ms": "10000",
      listeners: `http://127.0.0.1:${port}`
    })
  )
  const child = session.spawn(javaCommand(), [
    ...MIRROR_MAKER_JVM,
    loggingOption,
    "-cp",
    mirrorMakerJars(),
    "org.apache.kafka.connect.cli.ConnectStandalone",
    file
  ])
  const url = `http://127.0.0.1:${port}/connectors`
  await until(async () => !child.running() || (await fetch(url)).ok, {
    what: () => `Connect to answer: ${child.output().slice(-2_000)}`,
    everyMs: 200
  })
  return { child, url, port }
}

const connector = ({ run, shape, source, target }: Job, transform: boolean): Readonly<Record<string, string>> => ({
  "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
  "source.cluster.alias": run,
  "target.cluster.alias": "target",
  "source.cluster.bootstrap.servers": source.bootstrap,
  "target.cluster.bootstrap.servers": target.bootstrap,
  topics: topicPattern(shape),
  "replication.factor": "1",
  ...connectorTuning(shape.partitions * shape.topics),
  ...prefixed("source.consumer.", consumerTuning),
  ...prefixed("producer.override.", producerTuning(shape.codec)),
  ...(transform ? connectTransform : {})
})

const asked = async (url: string, init: RequestInit): Promise<void> => {
  const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(60_000) })
  if (!answer.ok) throw new Error(`Connect says ${answer.status}: ${await answer.text()}`)
}

/** Its worker starts with the first run and ends with `end`. */
export const mirrorMakerWorker = (transform = false): Peer => {
  let worker: Worker | undefined
  return {
    name: `MirrorMaker 2, tuned, warm${transform ? ", transform" : ""}`,
    id: "mm2-warm",
    transform,
    fresh: false,
    start: async (job) => {
      worker ??= await startWorker(job.session, job.target)
      const { child, url } = worker
      await asked(`${url}/${job.run}/config`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(connector(job, transform))
      })
      return {
        pid: child.pid,
        running: child.running,
        output: child.output,
        stop: () => asked(`${url}/${job.run}`, { method: "DELETE" })
      }
    },
    end: async () => {
      if (worker === undefined) return
      await worker.child.stop("SIGKILL")
      releasePorts([worker.port])
      worker = undefined
    }
  }
}
