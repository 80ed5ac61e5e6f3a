/**
 * `npm run test:deploy`: what lies in deploy/, read by the programs that it is for, closed by "N passed, N failed".
 * What can be checked without them is checked by npm test (test/deploy). `--manifests` (npm run deploy:manifests)
 * writes deploy/kubernetes/onceover.yaml from the chart instead.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { compose, helm, kubernetesValidate, promtool, systemdAnalyze } from "./deployTools.ts"
import { close, type Count, minutes, root, run } from "./stages.ts"

const KUBERNETES = "1.31"
const chart = "deploy/helm/onceover"
const manifest = join(root, "deploy/kubernetes/onceover.yaml")

const counts: Array<Count> = []
const record = (passed: boolean): void => void counts.push(passed ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 })
const check = (name: string, command: string, ...args: ReadonlyArray<string>): void =>
  record(run(name, command, args, minutes(5)))

const rendered = (path: string, ...args: ReadonlyArray<string>): string => {
  const { status, stderr, stdout } = spawnSync(path, ["template", ...args, "--kube-version", KUBERNETES], {
    cwd: root,
    encoding: "utf8",
    timeout: minutes(1)
  })
  if (status !== 0) throw new Error(`helm template ${args.join(" ")}: ${stderr}`)
  return stdout
}

const HEAD = `# onceover on Kubernetes without Helm: kubectl -n kafka apply -f deploy/kubernetes/onceover.yaml
#
# Made from the chart (deploy/helm/onceover) by npm run deploy:manifests. Change the image, the namespace that the HPA's
# selector names, and the configuration. Without an adapter for the lag (deploy/README.md), leave out the
# HorizontalPodAutoscaler and set spec.replicas.
`

const plain = (path: string): string =>
  HEAD +
  rendered(path, "onceover", chart, "-n", "kafka", "-f", join(chart, "manifest-values.yaml")).split("\n")
    .filter((line) => !/helm\.sh\/chart|managed-by: Helm|^# Source/.test(line)).join("\n")

/** The chart in its shapes, and what it makes. */
const kubernetes = (work: string): void => {
  const path = helm()
  const validate = kubernetesValidate()
  const files = [manifest]
  if (path !== null) {
    const values = ["-f", join(chart, "ci-values.yaml")]
    check("helm lint", path, "lint", chart, ...values, "--strict", "--kube-version", KUBERNETES)
    for (const workload of ["StatefulSet", "Deployment"]) {
      for (const enabled of [true, false]) {
        const file = join(work, `${workload}-${enabled}.yaml`)
        const sets = [
          "workload=" + workload,
          ...["autoscaling", "podMonitor", "podDisruptionBudget"].map((part) => `${part}.enabled=${enabled}`)
        ]
        writeFileSync(file, rendered(path, "mirror", chart, "-n", "kafka", ...values, "--set", sets.join(",")))
        files.push(file)
      }
    }
    console.log("\n== the manifests are what the chart makes")
    const same = plain(path) === readFileSync(manifest, "utf8")
    if (!same) console.error("deploy/kubernetes/onceover.yaml is old: npm run deploy:manifests")
    record(same)
    console.log("\n== a chart without clusters, or with a setting that is the chart's, is refused")
    record(
      [[], [...values, "--set", "config.http.listen=x"]].every((args) =>
        spawnSync(path, ["template", chart, ...args, "--kube-version", KUBERNETES], { cwd: root }).status !== 0
      )
    )
  }
  if (validate !== null) check("Kubernetes's schemas", validate, "--strict", "-k", KUBERNETES, ...files)
}

/** With a program that is there in the place of ours: systemd looks whether it is. */
const systemd = (work: string): void => {
  const path = systemdAnalyze()
  if (path === null) return
  const unit = join(work, "onceover.service")
  const text = readFileSync(join(root, "deploy/systemd/onceover.service"), "utf8")
  writeFileSync(unit, text.replace("/opt/onceover/bin/onceover", "/bin/true"))
  check("systemd-analyze verify", path, "verify", unit)
  check("systemd-analyze security", path, "security", "--offline=true", "--threshold=25", "--no-pager", unit)
}

/** From the base image where it is here or can be pulled; NODE_IMAGE names another. */
const image = (): void => {
  const base = process.env["NODE_IMAGE"] ?? "node:24-bookworm-slim"
  const docker = (...args: ReadonlyArray<string>): boolean =>
    spawnSync("docker", args, { stdio: "ignore", timeout: minutes(3), killSignal: "SIGKILL" }).status === 0
  if (!docker("image", "inspect", base) && !docker("pull", base)) {
    console.log(
      `\nthe image was not built: no Docker engine runs, or ${base} is not to be had (NODE_IMAGE names another)`
    )
    return
  }
  const tag = `onceover-check:${process.pid}`
  const args = [
    "--network",
    "host",
    "--build-arg",
    `NODE_IMAGE=${base}`,
    "-f",
    "deploy/docker/Dockerfile",
    "-t",
    tag,
    "."
  ]
  record(run("docker build", "docker", ["build", ...args], minutes(30)))
  check(
    "the image runs as nobody special, and writes nothing",
    "docker",
    "run",
    "--rm",
    "--read-only",
    "--cap-drop",
    "ALL",
    tag,
    "--version"
  )
  docker("rmi", "-f", tag)
}

const main = (): void => {
  if (process.argv.includes("--manifests")) {
    const path = helm()
    if (path === null) return close([{ passed: 0, failed: 1 }])
    return writeFileSync(manifest, plain(path))
  }
  const work = mkdtempSync(join(tmpdir(), "onceover-deploy-"))
  try {
    const prometheus = promtool()
    if (prometheus !== null) {
      check("promtool check", prometheus, "check", "rules", "deploy/prometheus/rules.yaml")
      check("promtool test", prometheus, "test", "rules", "deploy/prometheus/rules.test.yaml")
    }
    kubernetes(work)
    systemd(work)
    const [command, ...first] = compose() ?? []
    if (command !== undefined) check("compose", command, ...first, "-f", "deploy/docker/compose.yaml", "config", "-q")
    image()
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  close(counts)
}

main()
