/**
 * What a run of the benchmark holds: a folder under .work, processes, clusters. All of it is gone when the session ends, on
 * Ctrl-C too, and when this process is killed (reaper.ts).
 */
import { type ChildProcess, spawn } from "node:child_process"
import { rmSync } from "node:fs"
import { type ClusterOptions, type KafkaCluster, startClusters } from "../test/kit/kafka.ts"
import { makeWorkFolder } from "../test/kit/paths.ts"
import { startReaper } from "../test/kit/reaper.ts"

export interface Child {
  readonly pid: number
  /** The end of what it has written. */
  readonly output: () => string
  readonly exited: Promise<number | null>
  readonly running: () => boolean
  /** Asks it to end, and kills it when it has not after `patienceMs`. */
  readonly stop: (signal: NodeJS.Signals, patienceMs?: number) => Promise<void>
}

export interface Session {
  readonly folder: string
  /** A source and a target. */
  readonly clusters: () => Promise<readonly [KafkaCluster, KafkaCluster]>
  readonly spawn: (command: string, args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) => Child
  readonly end: () => Promise<void>
}

const KEPT = 1_000_000

/**
 * Brokers as they run in production as far as that fits on a small machine: the test kit's start quickly and stay slow (one
 * compiler, serial collector); here the broker must not be what limits.
 */
const BROKER_JVM = ["-Xmx1g", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC"]

/** What the kit sets for quick tests goes back to what is common where it costs under load. */
const brokerOptions = (name: string): ClusterOptions => ({
  name,
  jvm: BROKER_JVM,
  properties: {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "message.max.bytes": "4000000",
    "group.share.session.timeout.ms": "45000",
    "log.retention.check.interval.ms": "300000",
    "log.cleaner.backoff.ms": "15000"
  }
})

export const brokerJvm: ReadonlyArray<string> = BROKER_JVM

export const openSession = (): Session => {
  const folder = makeWorkFolder("bench")
  const reaper = startReaper([folder])
  const children = new Map<number, ChildProcess>()
  const held: Array<KafkaCluster> = []
  const watch = () => reaper.watch([...children.keys()])

  const startChild: Session["spawn"] = (command, args, env = {}) => {
    // A process group of its own: Ctrl-C reaches this program, which ends them in order.
    const child = spawn(command, args, {
      cwd: folder,
      detached: true,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const { pid } = child
    let text = ""
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8")
      stream.on("data", (chunk: string) => text = (text + chunk).slice(-KEPT))
    }
    const exited = new Promise<number | null>((resolve) => {
      child.once("error", (error) => {
        text += String(error)
        resolve(null)
      })
      child.once("close", (code) => {
        if (pid !== undefined) children.delete(pid)
        watch()
        resolve(code)
      })
    })
    if (pid !== undefined) children.set(pid, child)
    watch()
    const running = () => child.exitCode === null && child.signalCode === null && pid !== undefined
    return {
      pid: pid ?? -1,
      output: () => text,
      exited,
      running,
      stop: async (signal, patienceMs = 30_000) => {
        if (!running()) return
        child.kill(signal)
        const late = setTimeout(() => child.kill("SIGKILL"), patienceMs)
        await exited
        clearTimeout(late)
      }
    }
  }

  return {
    folder,
    clusters: async () => {
      const started = await startClusters([brokerOptions("bench-source"), brokerOptions("bench-target")])
      held.push(...started)
      return started as [KafkaCluster, KafkaCluster]
    },
    spawn: startChild,
    end: async () => {
      for (const child of children.values()) child.kill("SIGKILL")
      await Promise.all(held.map((cluster) => cluster.stop()))
      rmSync(folder, { recursive: true, force: true })
      reaper.end()
    }
  }
}
