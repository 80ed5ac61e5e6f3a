/** Writing: a Produce request alone, and what the producer does with a batch from being given it to its answer. */
import { produceBody } from "../../../src/txn/produceRequest.ts"
import { Partitions } from "../../../src/txn/partitions.ts"
import { ProduceRun } from "../../../src/txn/produceRun.ts"
import { defaultProducerSettings } from "../../../src/txn/producerSettings.ts"
import { Routes } from "../../../src/txn/routes.ts"
import { produce } from "../../../src/wire/messages/produce.ts"
import { batchOf, type MicroCase } from "../microCase.ts"

const TOPIC_ID = "q2pvR0GnTWqVwkWkwPbN1Q"
const VERSION = 13

const indexes = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, n) => n)

/** Of 2 KB each: the records are not copied, so their size does not count. */
const written = (count: number): MicroCase => ({
  name: `write a Produce request of ${count} partitions`,
  warmUp: Math.ceil(6000 / count),
  operations: Math.ceil(2000 / count),
  prepare: () => {
    const records = batchOf(2, 1000, "none")
    const partitionData = indexes(count).map((index) => ({ index, records }))
    const body = { transactionalId: "onceover-lane-0", acks: -1, timeoutMs: 30_000 }
    return () => produce.request.encode(VERSION, { ...body, topicData: [{ topicId: TOPIC_ID, partitionData }] })
  }
})

const nothing = (): void => {}

/** From `produce` called with one batch for each partition to all their outcomes, without the network between. */
const run = (count: number): MicroCase => ({
  name: `produce a batch to each of ${count} partitions`,
  warmUp: Math.ceil(4000 / count),
  operations: Math.ceil(640 / count),
  prepare: () => {
    const partitions = new Partitions({ mayRestart: false })
    const routes = new Routes()
    const leaders = indexes(count).map((partition) => ({
      partition,
      leader: 1,
      leaderEpoch: 0,
      replicas: [1],
      isr: [1]
    }))
    routes.apply(["t"], new Map([["t", { name: "t", id: TOPIC_ID, internal: false, partitions: leaders }]]))
    const context = {
      settings: defaultProducerSettings,
      partitions,
      routes,
      identity: { current: { producerId: 4_000_000_000, epoch: 3 } },
      transactionalId: "onceover-lane-0",
      zeroFirst: true,
      onStall: nothing,
      onRecover: nothing,
      onLeader: nothing
    }
    const batches = indexes(count).map((partition) => ({ topic: "t", partition, bytes: batchOf(2, 1000, "none") }))
    const answer = produce.response.decode(
      VERSION,
      Buffer.concat(produce.response.encode(VERSION, {
        responses: [{
          topicId: TOPIC_ID,
          partitionResponses: indexes(count).map((index) => ({ index, errorCode: 0, baseOffset: 1000 }))
        }]
      }))
    )
    return () => {
      const call = new ProduceRun(context, batches)
      let request = call.nextRequest(0)
      while (request !== null) {
        produce.request.encode(VERSION, produceBody(request, context.transactionalId, 30_000))
        call.requestAnswered(request, answer, 0)
        request = call.nextRequest(0)
      }
      if (!call.done || call.outcomes.some((outcome) => !outcome.ok)) throw new Error("not all was produced")
      return call.outcomes
    }
  }
})

export const cases: ReadonlyArray<MicroCase> = [...[1, 4, 64, 1000].map(written), run(4), run(64)]
