/**
 * `npm run test:containers`: the tests of whole mirrors on containers, and the faults that only containers can have
 * (testcontainers/README.md), closed by one line "N passed, N failed".
 *
 * - Where no Docker engine runs and none may be brought up, nothing is run: one line says so, and the exit code is 0.
 * - What a killed run has left is removed first, what this one leaves is removed last: by label, and only what belongs
 *   to a run whose process is gone.
 *
 * Arguments go to vitest: `npm run test:containers -- testcontainers/network.test.ts`.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { close, minutes, root, tests } from "./stages.ts"

const label = "onceover.run"

const docker = (...args: ReadonlyArray<string>): string => {
  const { error, status, stderr, stdout } = spawnSync("docker", args, { encoding: "utf8", timeout: minutes(2) })
  if (error !== undefined || status !== 0) throw new Error(`docker ${args.join(" ")}: ${error?.message ?? stderr}`)
  return stdout.trim()
}

/** Id and run of each container or network that has our label. */
const labelled = (...list: ReadonlyArray<string>): ReadonlyArray<readonly [id: string, run: number]> =>
  docker(...list, "--filter", `label=${label}`, "--format", `{{.ID}} {{.Label "${label}"}}`).split("\n")
    .filter((line) => line !== "").map((line) => {
      const [id = "", run = ""] = line.split(" ")
      return [id, Number(run)] as const
    })

const lives = (pid: number): boolean => {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** Removes what no living run owns; this one counts as gone, since it calls this before its start and at its end. */
const sweep = (): void => {
  const dead = (all: ReturnType<typeof labelled>) => all.filter(([, run]) => !lives(run)).map(([id]) => id)
  const containers = dead(labelled("ps", "-a"))
  if (containers.length > 0) docker("rm", "-fv", ...containers)
  const networks = dead(labelled("network", "ls"))
  if (networks.length > 0) docker("network", "rm", ...networks)
}

const script = (name: string): { readonly status: number | null; readonly said: string } => {
  const { status, stdout } = spawnSync("sh", [join(root, "testcontainers", name)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: minutes(20),
    killSignal: "SIGKILL"
  })
  return { status, said: stdout.trim() }
}

const runTests = (args: ReadonlyArray<string>): void => {
  sweep()
  const network = `onceover-${process.pid}`
  // On loopback only: these brokers ask nobody for a password.
  docker(
    "network",
    "create",
    "--label",
    `${label}=${process.pid}`,
    "-o",
    "com.docker.network.bridge.host_binding_ipv4=127.0.0.1",
    network
  )
  process.env["ONCEOVER_TEST_KAFKA"] = "containers"
  process.env["ONCEOVER_TEST_NETWORK"] = network
  process.env["ONCEOVER_TEST_RUN"] = String(process.pid)
  process.env["TESTCONTAINERS_RYUK_DISABLED"] = "true"
  const config = join(root, "testcontainers/vitest.config.ts")
  try {
    close([
      tests({
        name: "tests on containers",
        args: ["--config", config, ...args],
        timeout: minutes(15),
        chosen: args.length > 0
      })
    ])
  } finally {
    sweep()
  }
}

const main = (): void => {
  const engine = script("engine.sh")
  if (engine.status === 3) return console.log(`No container test was run: ${engine.said.replace(/^engine\s+/, "")}`)
  console.log(engine.said)
  const image = engine.status === 0 ? script("image.sh") : engine
  if (image !== engine) console.log(image.said)
  if (image.status === 0) runTests(process.argv.slice(2))
  else close([{ passed: 0, failed: 1 }])
}

main()
