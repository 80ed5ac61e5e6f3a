/** Where MirrorMaker 2 keeps what it has done, by its file: for going on where it stopped. */
import { Effect } from "effect"
import { readText } from "../readText.ts"
import { type Mm2File, readMm2 } from "./written.ts"

export interface Origin {
  readonly source: string
  readonly target: string
  /** On the target: Connect's offsets, which are MirrorMaker's positions on the source. */
  readonly offsetsTopic: string
  /** On the target: the group of its workers, which has members while MirrorMaker runs. */
  readonly workerGroup: string
}

const FLOW = /^(.+?)->(.+?)\.enabled$/

const originsOf = ({ settings, style }: Mm2File): ReadonlyArray<Origin> => {
  const said = (key: string) => settings.find((setting) => setting.key === key)?.value
  const origin = (source: string, target: string): Origin => ({
    source,
    target,
    offsetsTopic: said(`${target}.offset.storage.topic`) ?? said("offset.storage.topic") ??
      said("offsets.storage.topic") ??
      (style === "driver" ? `mm2-offsets.${source}.internal` : "connect-offsets"),
    workerGroup: said(`${target}.group.id`) ?? (style === "driver" ? `${source}-mm2` : "connect-cluster")
  })
  if (style === "connector") {
    return [origin(said("source.cluster.alias") ?? "source", said("target.cluster.alias") ?? "target")]
  }
  return settings.flatMap(({ key, value }) => {
    const flow = FLOW.exec(key)
    return flow !== null && value.toLowerCase() === "true" ? [origin(flow[1] as string, flow[2] as string)] : []
  })
}

/** Empty for a file that is not MirrorMaker's, or cannot be read: the loader says why. */
export const mm2Origins = (path: string): Effect.Effect<ReadonlyArray<Origin>> =>
  readText(path).pipe(
    Effect.map((text) => {
      const file = readMm2(path, text)
      return file === null ? [] : originsOf(file)
    }),
    Effect.catch(() => Effect.succeed([]))
  )
