/** Starts the pair of clusters that integration tests share, once per run of vitest, and stops it after. */
import type { TestProject } from "vitest/node"
import { type KafkaCluster, startClusters } from "./kafka.ts"
import type { SharedCluster } from "./shared.ts"

const described = ({ bootstrap, clusterId, logDir, version }: KafkaCluster): SharedCluster => ({
  bootstrap,
  clusterId,
  logDir,
  version
})

const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const [source, target] = await startClusters([{ name: "source" }, { name: "target" }]) as [KafkaCluster, KafkaCluster]
  project.provide("sharedClusters", { source: described(source), target: described(target) })
  return async () => {
    await Promise.all([source.stop(), target.stop()])
  }
}

export { setup }
