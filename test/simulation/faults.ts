/** What goes wrong in a run, drawn from the plan's rates. */
import { Effect } from "effect"
import { takeOver } from "../../src/txn/takeOver.ts"
import { defaultProducerSettings } from "../../src/txn/producerSettings.ts"
import type { Embedded } from "../../src/embedded/embedded.ts"
import type { Passing } from "../../src/embedded/faults.ts"
import { Dice } from "./dice.ts"
import { Gate, START_MS } from "./loop.ts"
import { clientOf } from "./network.ts"
import type { World } from "./simulation.ts"
import type { Worker } from "./worker.ts"

/** A partition of any topic, internal ones of ours included, gets another leader. */
const moveSomeLeader = (world: World, dice: Dice, cluster: Embedded, name: string): void => {
  const topics = [...cluster.state.topics.values()]
  const topic = dice.pick(topics)
  const partition = dice.int(0, topic.partitions.length - 1)
  const before = topic.partitions[partition]?.leader
  cluster.moveLeader(topic.name, partition)
  const after = topic.partitions[partition]?.leader
  if (before !== after) {
    world.history.add(name, `${topic.name}-${partition} is led by broker ${after} now, not ${before}`)
  }
}

/** As an impatient peer would, or an operator: InitProducerId with the id of a lane. */
export const fence = (world: World, transactionalId: string): void => {
  const { history, target } = world
  history.add("world", `${transactionalId} is fenced`)
  const program = Effect.scoped(Effect.gen(function*() {
    const cluster = yield* clientOf(target, "operator", new Gate(), {})
    yield* takeOver({ ...defaultProducerSettings, cluster, transactionalId, purpose: "fence" })
  })).pipe(Effect.ignore)
  world.run(program)
}

export const freezeFor = (world: World, worker: Worker, forMs: number): void => {
  if (!worker.running || worker.frozen) return
  worker.freeze()
  world.loop.after(forMs, () => worker.thaw())
}

export const crashFor = (world: World, worker: Worker, forMs: number): void => {
  if (!worker.running) return
  worker.crash()
  world.loop.after(forMs, () => {
    if (!worker.running) worker.start()
  })
}

const stopABroker = (world: World, dice: Dice): void => {
  const cluster = dice.chance(0.5) ? world.source : world.target
  const ids = [...cluster.state.brokers.keys()]
  if (ids.length < 2 || [...cluster.state.brokers.values()].some((broker) => !broker.running)) return
  const id = dice.pick(ids)
  world.history.add("world", `broker ${id} of ${cluster.state.clusterId} stops`)
  cluster.stopBroker(id)
  world.loop.after(dice.wait(2_000), () => cluster.startBroker(id))
}

const slowMarkers = (world: World, dice: Dice): void => {
  const mostMs = dice.pick([200, 1_000, 5_000])
  world.history.add("world", `markers take up to ${mostMs} ms`)
  world.target.setMarkerDelay(() => dice.int(1, mostMs))
  world.loop.after(dice.wait(2_000), () => world.target.setMarkerDelay(() => dice.int(1, 10)))
}

const moveACoordinator = (world: World, dice: Dice): void => {
  const ids = world.workers.flatMap((worker) => worker.transactionalIds)
  if (dice.chance(0.7)) world.target.moveCoordinator("transaction", dice.pick(ids))
  else world.source.moveCoordinator("group", "mirror")
  world.history.add("world", "a coordinator moves")
}

/** Nothing of a worker reaches one of the clusters for a while; with the source it loses its locks without knowing. */
const clog = (world: World, client: string, cluster: string, forMs: number): void => {
  const key = `${client} ${cluster}`
  world.history.add(client, `does not reach the ${cluster} any more`)
  world.network.clogged.add(key)
  world.loop.after(forMs, () => world.network.clogged.delete(key))
}

/** Its way to the target is long for a while. */
const slowDown = (world: World, dice: Dice, client: string): void => {
  const key = `${client} ${world.plan.mode === "kip-1289" ? "source" : "target"}`
  const mostMs = dice.pick([100, 300, 1_000])
  world.history.add(client, `reaches the target in up to ${mostMs} ms`)
  world.network.slowed.set(key, mostMs)
  world.loop.after(dice.wait(2 * mostMs), () => world.network.slowed.delete(key))
}

/** Sessions end with their connections, and the locks with them: others get the same records at once. */
const loseSource = (world: World, client: string): void => {
  world.history.add(client, "loses its connections to the source")
  world.source.disconnect(client)
}

/** Requests whose moment matters. */
const WRITES = new Set(["TxnShareAcknowledge", "Produce", "EndTxn", "AddPartitionsToTxn", "InitProducerId"])

/** Something goes wrong just when a worker writes: that is when it hurts. */
const troubleAt = (world: World, dice: Dice) => (cluster: string, passing: Passing): void => {
  const { loop, plan, source, workers } = world
  const written = plan.mode === "kip-1289" ? "source" : "target"
  if (cluster !== written || !WRITES.has(passing.apiName) || !dice.chance(plan.requests.trouble)) return
  const worker = workers.find(({ client }) => client === passing.client)
  if (worker === undefined) return
  const longest = Math.max(plan.lockMs, plan.sessionTimeoutMs) * (1 + dice.next())
  const { client } = passing
  const troubles: ReadonlyArray<() => void> = [
    () => crashFor(world, worker, dice.wait(500)),
    () => freezeFor(world, worker, longest),
    () => freezeFor(world, worker, dice.wait(plan.sessionTimeoutMs)),
    () => clog(world, client, "source", longest),
    () => clog(world, client, "target", dice.wait(1_500)),
    () => moveSomeLeader(world, dice, source, "source"),
    () => loseSource(world, client),
    () => {
      slowDown(world, dice, client)
      loseSource(world, client)
    },
    () => {
      slowDown(world, dice, client)
      moveSomeLeader(world, dice, source, "source")
    },
    () => fence(world, dice.pick(worker.transactionalIds)),
    () => slowMarkers(world, dice)
  ]
  const happen = dice.pick(troubles)
  loop.after(dice.int(0, 2 * plan.requests.latencyMs), () => {
    if (loop.nowMs < START_MS + plan.faultPhaseMs && worker.client === client) happen()
  })
}

export const scheduleFaults = (world: World): void => {
  const { loop, plan, workers } = world
  const { times } = plan
  const endMs = START_MS + plan.faultPhaseMs
  const every = (meanMs: number, purpose: string, happen: (dice: Dice) => void): void => {
    if (meanMs === Infinity) return
    const dice = new Dice(plan.seed, purpose)
    const next = (): void => {
      const atMs = loop.nowMs + dice.wait(meanMs)
      if (atMs >= endMs) return
      loop.at(atMs, () => {
        happen(dice)
        next()
      })
    }
    next()
  }
  world.onRequest = troubleAt(world, new Dice(plan.seed, "trouble"))
  every(times.crash, "crash", (dice) => crashFor(world, dice.pick(workers), dice.wait(1_500)))
  every(times.freeze, "freeze", (dice) => {
    const longest = Math.max(plan.lockMs, plan.transactionTimeoutMs, plan.sessionTimeoutMs)
    freezeFor(world, dice.pick(workers), dice.chance(0.5) ? dice.wait(1_000) : longest * (1 + dice.next()))
  })
  every(times.sourceLeader, "source leader", (dice) => moveSomeLeader(world, dice, world.source, "source"))
  every(times.targetLeader, "target leader", (dice) => moveSomeLeader(world, dice, world.target, "target"))
  every(times.coordinator, "coordinator", (dice) => moveACoordinator(world, dice))
  every(times.fence, "fence", (dice) => fence(world, dice.pick(dice.pick(workers).transactionalIds)))
  every(times.slowMarkers, "slow markers", (dice) => slowMarkers(world, dice))
  if (plan.mode === "kip-1289") every(times.oldBroker, "old broker", (dice) => downgrade(world, dice))
  every(times.brokerStop, "broker stop", (dice) => stopABroker(world, dice))
}

const downgrade = (world: World, dice: Dice): void => {
  const id = dice.pick([...world.target.state.brokers.keys()])
  world.history.add("world", `broker ${id} is without KIP-1289`)
  world.network.old.add(id)
  world.loop.after(dice.wait(2_000), () => world.network.old.delete(id))
}

/** Everything runs again, and nothing more goes wrong. */
export const stopFaults = (world: World): void => {
  const { network, source, target, workers } = world
  network.rough = false
  network.clogged.clear()
  network.slowed.clear()
  network.old.clear()
  for (const cluster of [source, target]) for (const id of cluster.state.brokers.keys()) cluster.startBroker(id)
  target.setMarkerDelay(1)
  target.releaseMarkers()
  for (const worker of workers) {
    worker.thaw()
    if (!worker.running) worker.start()
  }
}
