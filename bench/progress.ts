/** How far a mirror is: the end offsets of its target topics, asked for again and again on one connection. */
import type { Bootstrap } from "../test/kit/loader.ts"
import { openAdmin } from "./topics.ts"

export interface Progress {
  /** Sum of the end offsets (high watermarks) of all partitions. */
  readonly offsets: () => Promise<number>
  /** Sum of the last stable offsets: what a reader in read_committed may read. */
  readonly stable: () => Promise<number>
  readonly close: () => Promise<void>
}

const LATEST = -1n

/** The topics must exist and keep their partitions. */
export const openProgress = async (cluster: Bootstrap, topics: ReadonlyArray<string>): Promise<Progress> => {
  const admin = openAdmin(cluster)
  const metadata = await admin.metadata({ topics: [...topics], forceUpdate: true })
  const asked = topics.map((name) => ({
    name,
    partitions: (metadata.topics.get(name)?.partitions ?? []).map((_, partitionIndex) => ({
      partitionIndex,
      timestamp: LATEST
    }))
  }))
  const sum = async (isolationLevel: 0 | 1): Promise<number> => {
    const found = await admin.listOffsets({ topics: asked, isolationLevel })
    return found.reduce(
      (all, { partitions }) => all + partitions.reduce((own, { offset }) => own + Number(offset), 0),
      0
    )
  }
  return { offsets: () => sum(0), stable: () => sum(1), close: async () => void await admin.close() }
}
