/** Resident memory: the most at full speed, and what is left of it when all is mirrored and it was quiet for a while. */
import { setTimeout as delay } from "node:timers/promises"
import { fill } from "../fill.ts"
import { mirrorMaker } from "../peers/mirrorMaker.ts"
import { onceover } from "../peers/onceover.ts"
import type { Measured, Memories, MemoryFigure } from "../results.ts"
import { fingerprint, measureRun, watchTree } from "../run.ts"
import { makeShape, type Shape, topicsOf } from "../shape.ts"
import { deleteMany } from "../topics.ts"
import type { Context } from "./context.ts"

export const memoryPeers = {
  consumer: onceover({ mode: "consumer" }),
  share: onceover({ mode: "share" }),
  mirrorMaker: mirrorMaker({ tuned: true })
}

const measureShape = async (context: Context, shape: Shape, what: string): Promise<Omit<Memories, keyof Measured>> => {
  const { fail, options: { idleSeconds }, say, source } = context
  const topics = topicsOf(shape)
  const measured: Array<MemoryFigure> = []
  try {
    say(`  filling ${what}`)
    await fill(source, shape)
    const wanted = await fingerprint(source, topics)
    for (const peer of Object.values(memoryPeers)) {
      let idleMb = Number.NaN
      let peakMb = Number.NaN
      try {
        const run = await measureRun({
          ...context,
          peer,
          shape,
          wanted,
          meanwhile: async ({ pid }) => {
            await delay(idleSeconds * 1000)
            const usage = watchTree(pid)()
            idleMb = usage.rssMb
            peakMb = usage.peakMb
          }
        })
        if (run.doubts.length > 0) fail(`memory of ${peer.name} is not believed: ${run.doubts.slice(0, 3).join("; ")}`)
        else measured.push({ peer: peer.name, peakMb, idleMb })
        say(`  ${peer.name}: ${Math.round(peakMb)} MB at most, ${Math.round(idleMb)} MB idle, ${what}`)
      } catch (error) {
        fail(`memory of ${peer.name}, ${what}, failed: ${(error as Error).message}`)
      }
    }
  } catch (error) {
    fail(`memory, ${what}, failed: ${(error as Error).message}`)
  } finally {
    await deleteMany(source, topics)
  }
  return { what, idleSeconds, measured }
}

export const memory = (context: Context): Promise<Omit<Memories, keyof Measured>> =>
  measureShape(context, makeShape({ name: "memory" }, context.options.megabytes), "1 topic, 4 partitions")

/** Many topics: a few records in every partition. */
export const manyTopics = (context: Context): Promise<Omit<Memories, keyof Measured>> => {
  const { partitions, topics } = context.options
  const records = topics * partitions * 2
  const shape = { ...makeShape({ name: "many", topics, partitions }, 1), records }
  return measureShape(context, shape, `${topics} topics, ${topics * partitions} partitions`)
}
