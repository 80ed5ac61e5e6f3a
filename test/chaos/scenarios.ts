/** What can go wrong, each at full size, at moments that the dice choose. Ends when it has had its faults or its time. */
import { setTimeout as delay } from "node:timers/promises"
import type { KafkaCluster } from "../kit/kafka.ts"
import { LOCK_MS, type Mode, TRANSACTION_TIMEOUT_MS, type Worker, type World } from "./world.ts"

export interface Scenario {
  readonly what: string
  readonly mode: Mode
  /** Of each cluster; default 1. */
  readonly brokers?: 1 | 3
  readonly run: (world: World) => Promise<void>
}

/** A random moment: faults come at any time, not when something is seen. */
const moment = (world: World, mostMs: number): Promise<void> => delay(world.dice.next() * mostMs)

const replace = async (world: World, worker: Worker): Promise<void> => {
  // By chance the same name, which ends what the killed one had open, or another, which has to fence it.
  await world.start(world.dice.chance(0.5) ? worker.name : `w${world.dice.int(1_000, 9_999)}`)
}

const kills = async (world: World): Promise<void> => {
  for (const name of ["a", "b", "c"]) await world.running(name)
  const share = 200_000 / 20
  for (let n = 0; n < 20 && world.goesOn; n++) {
    while (world.sent < n * share) await world.more(1_000)
    await moment(world, 3_000)
    const worker = world.dice.pick(world.alive)
    await world.kill(worker)
    world.say(`SIGKILL ${n + 1}: ${worker.name}, ${world.sent} records sent`)
    await replace(world, worker)
  }
  await world.recovered("the last SIGKILL")
  while (world.sent < 200_000 && world.goesOn) await world.more(5_000)
}

const freezes = async (world: World): Promise<void> => {
  for (const name of ["a", "b"]) await world.running(name)
  for (let n = 0; n < 4 && world.goesOn; n++) {
    await world.more(2_000)
    await moment(world, 2_000)
    const worker = world.dice.pick(world.alive)
    world.fault(`SIGSTOP: ${worker.name}`)
    await worker.process.kill("SIGSTOP")
    // The source's lock and the target's transaction are both over when it wakes.
    await delay(Math.max(LOCK_MS, TRANSACTION_TIMEOUT_MS) + world.dice.int(3_000, 10_000))
    await world.recovered(`${worker.name} frozen`)
    await worker.process.kill("SIGCONT")
    await world.recovered(`${worker.name} thawed`)
  }
}

const brokers = async (world: World): Promise<void> => {
  for (const name of ["a", "b"]) await world.running(name)
  const choices: ReadonlyArray<readonly [name: string, of: ReadonlyArray<KafkaCluster>]> = [
    ["the source broker", [world.source]],
    ["the target broker", [world.target]],
    ["both brokers", [world.source, world.target]]
  ]
  for (let round = 0; round < 2; round++) {
    for (const [name, clusters] of choices) {
      if (!world.goesOn) return
      await world.more(2_000)
      await moment(world, 2_000)
      world.fault(`SIGKILL: ${name}`)
      await Promise.all(clusters.map((cluster) => cluster.kill("SIGKILL")))
      await moment(world, round === 0 ? 500 : 15_000)
      await Promise.all(clusters.map((cluster) => cluster.restart()))
      await world.recovered(`${name} back`)
    }
  }
}

const scale = async (world: World): Promise<void> => {
  for (const name of ["a", "b"]) await world.running(name)
  for (let round = 0; round < 2 && world.goesOn; round++) {
    await world.more(3_000)
    while (world.alive.length < 6) {
      world.fault(`${world.alive.length + 1} workers`)
      await world.start(`s${world.dice.int(1_000, 9_999)}`)
      await world.more(world.dice.int(200, 3_000))
    }
    await Promise.all(world.alive.map((worker) => worker.process.untilRunning(120_000)))
    await world.recovered("six workers")
    while (world.alive.length > 1) {
      world.fault(`${world.alive.length - 1} workers`)
      await world.stop(world.dice.pick(world.alive))
      await world.more(world.dice.int(200, 3_000))
    }
    await world.recovered("one worker")
    await world.running(`r${round}`)
  }
}

/** Members that come and go in the middle, some with SIGTERM, some with SIGKILL: partitions move all the time. */
const rebalances = async (world: World): Promise<void> => {
  for (const name of ["a", "b"]) await world.running(name)
  for (let n = 0; n < 12 && world.goesOn; n++) {
    await world.more(1_500)
    await moment(world, 2_000)
    const grow = world.alive.length < 2 || (world.alive.length < 4 && world.dice.chance(0.5))
    if (grow) {
      world.fault(`rebalance: one more than ${world.alive.length}`)
      await world.running(`m${n}`)
    } else {
      const worker = world.dice.pick(world.alive)
      const hard = world.dice.chance(0.5)
      world.fault(`rebalance: ${worker.name} ${hard ? "killed" : "leaves"}`)
      if (hard) await world.kill(worker)
      else await world.stop(worker)
    }
    if (n % 4 === 3) await world.recovered("rebalances")
  }
  await world.recovered("the last rebalance")
}

/** The flow goes from one mode to the other under its own name: the ledger, which is the flow's, goes with it. */
const modes = async (world: World): Promise<void> => {
  let mode: Mode = "share"
  let workers = [await world.running("a", mode), await world.running("b", mode)]
  for (let n = 0; n < 4 && world.goesOn; n++) {
    await world.more(world.dice.int(2_000, 6_000))
    await moment(world, 2_000)
    const next: Mode = mode === "share" ? "consumer" : "share"
    const hard = world.dice.chance(0.5)
    world.fault(`${mode} to ${next}, workers ${hard ? "killed" : "stopped"}`)
    for (const worker of workers) await (hard ? world.kill(worker) : world.stop(worker))
    mode = next
    workers = [await world.running("a", mode), await world.running("b", mode)]
    await world.recovered(`${mode} mode`)
  }
}

const leaders = async (world: World): Promise<void> => {
  for (const name of ["a", "b"]) await world.running(name)
  for (let n = 0; n < 8 && world.goesOn; n++) {
    await world.more(2_000)
    await moment(world, 2_000)
    const cluster = world.dice.pick([world.source, world.target])
    const broker = world.dice.pick(cluster.brokerIds)
    world.fault(`SIGKILL: broker ${broker} of ${cluster.name}`)
    await cluster.kill("SIGKILL", broker)
    // Two of three are enough: it goes on while the broker is away.
    if (world.dice.chance(0.5)) await world.recovered(`broker ${broker} of ${cluster.name} away`)
    await cluster.restart(broker)
    await world.recovered(`broker ${broker} of ${cluster.name} back`)
  }
}

const both = (name: string, scenario: Omit<Scenario, "mode">): ReadonlyArray<readonly [string, Scenario]> =>
  (["share", "consumer"] as const).map((mode) => [`${name}-${mode}`, { ...scenario, mode }])

export const SCENARIOS: ReadonlyMap<string, Scenario> = new Map([
  ...both("kills", { what: "20 SIGKILLs of 3 workers during 200,000 records", run: kills }),
  ...both("freezes", { what: "workers frozen for longer than lock and transaction, then thawed", run: freezes }),
  ...both("brokers", { what: "SIGKILL and restart of source broker, target broker, both", run: brokers }),
  ...both("scale", { what: "2 to 6 to 1 workers", run: scale }),
  ["rebalances-consumer", { what: "members that come and go", mode: "consumer", run: rebalances }],
  ["modes", { what: "share to consumer mode and back", mode: "share", run: modes }],
  ...both("leaders", { what: "three brokers a cluster, one killed at a time", brokers: 3, run: leaders })
])
