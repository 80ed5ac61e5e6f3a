/** The same records through every peer, in turns, so that noise meets all of them alike: the suites cost, transform and cells. */
import { fill } from "../fill.ts"
import { mirrorMaker } from "../peers/mirrorMaker.ts"
import { mirrorMakerWorker } from "../peers/mirrorMakerWorker.ts"
import { onceover } from "../peers/onceover.ts"
import type { Peer } from "../peers/peer.ts"
import { recordByRecord } from "../peers/recordByRecord.ts"
import { fingerprint, measureRun, type Run } from "../run.ts"
import { allCells, makeShape, type Shape, topicsOf } from "../shape.ts"
import { deleteMany } from "../topics.ts"
import type { Context } from "./context.ts"

export interface Comparison {
  readonly rounds: number
  readonly shapes: ReadonlyArray<Shape>
  readonly runs: ReadonlyArray<Run>
}

/** From here on others on the machine spoil what is measured. */
const SPOILT_CORES = 0.3

const told = ({ peer, running, whole }: Run): string => {
  const part = running ?? whole
  const figures = `${part.cpuSecondsPerGb.toFixed(2)} CPU s/GB, ${part.mbPerSecond.toFixed(1)} MB/s`
  const others = part.otherCores < SPOILT_CORES ? "" : `; OTHERS USED ${part.otherCores.toFixed(1)} CORES MEANWHILE`
  return `${peer}: ${figures}${running === null ? " (whole)" : ""}${others}`
}

/** Fills the source, runs every peer once a round, and removes what was filled. A run that fails is told and is in no figure. */
const comparePeers = async (
  context: Context,
  shape: Shape,
  peers: ReadonlyArray<Peer>,
  rounds: number
): Promise<ReadonlyArray<Run>> => {
  const { fail, say, source } = context
  const topics = topicsOf(shape)
  const runs: Array<Run> = []
  try {
    await fill(source, shape)
    const wanted = await fingerprint(source, topics)
    for (let round = 1; round <= rounds; round++) {
      if (round > 1 && !context.inTime()) return runs
      for (const peer of peers) {
        const what = `${shape.name} ${round}/${rounds}`
        try {
          const run = await measureRun({ ...context, peer, shape, wanted })
          runs.push(run)
          if (run.doubts.length === 0) say(`  ${what} ${told(run)}`)
          else fail(`${what} ${peer.name} is not believed: ${run.doubts.slice(0, 3).join("; ")}`)
        } catch (error) {
          fail(`${what} ${peer.name} failed: ${(error as Error).message}`)
        }
      }
    }
  } catch (error) {
    fail(`${shape.name} failed: ${(error as Error).message}`)
  } finally {
    await deleteMany(source, topics)
  }
  return runs
}

const compareShapes = async (
  context: Context,
  shapes: ReadonlyArray<Shape>,
  peers: ReadonlyArray<Peer>
): Promise<Comparison> => {
  const { rounds } = context.options
  const runs: Array<Run> = []
  try {
    for (const shape of shapes) {
      if (context.inTime()) runs.push(...await comparePeers(context, shape, peers, rounds))
      else context.fail(`${shape.name} is left out: the time of --minutes is up`)
    }
  } finally {
    for (const peer of peers) await peer.end?.()
  }
  return { rounds, shapes, runs }
}

export const COST_SHAPE = "1KB-lz4"

const costShape = ({ options }: Context): Shape => makeShape({ name: COST_SHAPE }, options.megabytes)

/** The peers of the suite cost, by name: goals are read from these. */
export const costPeers = {
  consumer: onceover({ mode: "consumer" }),
  share: onceover({ mode: "share" }),
  consumerAtLeastOnce: onceover({ mode: "consumer", guarantee: "at-least-once" }),
  shareAtLeastOnce: onceover({ mode: "share", guarantee: "at-least-once" }),
  mirrorMaker: mirrorMaker({ tuned: true }),
  recordByRecord
}

export const transformPeers = {
  consumer: onceover({ mode: "consumer", transform: true }),
  share: onceover({ mode: "share", transform: true }),
  mirrorMaker: mirrorMaker({ tuned: true, transform: true })
}

export const cellPeers = {
  consumer: onceover({ mode: "consumer" }),
  share: onceover({ mode: "share" }),
  mirrorMaker: mirrorMakerWorker()
}

/** Every peer as a fresh process. */
export const cost = (context: Context): Promise<Comparison> =>
  compareShapes(context, [costShape(context)], Object.values(costPeers))

/** With Connect's InsertHeader on both sides: every record is decoded and encoded. */
export const transform = (context: Context): Promise<Comparison> =>
  compareShapes(context, [costShape(context)], Object.values(transformPeers))

/** Throughput by size, codec, partitions, topics and batches. */
export const cells = (context: Context): Promise<Comparison> => {
  const { cellMegabytes, cells: wanted } = context.options
  const shapes = allCells(cellMegabytes).filter(({ name }) => wanted.includes(name))
  return compareShapes(context, shapes, Object.values(cellPeers))
}
