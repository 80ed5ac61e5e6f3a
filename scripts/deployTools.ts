/**
 * The validators of deploy/: found on this machine, or fetched into .tools/deploy through a package registry's own
 * client. A tool that cannot be had is null, with the reason printed: its checks are not run.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { minutes, root } from "./stages.ts"

const folder = join(root, ".tools/deploy")

/** Versions that the checks are known to work with. */
const HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
const KUBERNETES_VALIDATE = "kubernetes-validate==1.37.0"

const quiet = (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly timeout?: number } = {}
): boolean => {
  const { error, status } = spawnSync(command, args, {
    stdio: "ignore",
    timeout: minutes(2),
    killSignal: "SIGKILL",
    ...options
  })
  return error === undefined && status === 0
}

const onPath = (name: string): string | null => {
  const { status, stdout } = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" })
  return status === 0 ? stdout.trim() : null
}

/** A tool by name: on the path, kept from before, or made by `make`, which puts it at `at`. */
const tool = (name: string, at: string, make: () => boolean): string | null => {
  const path = onPath(name) ?? (existsSync(at) ? at : null)
  if (path !== null) return path
  mkdirSync(folder, { recursive: true })
  if (make() && existsSync(at)) return at
  console.log(`${name} is not here and cannot be fetched: what it checks is not checked`)
  return null
}

/** Of Debian's package prometheus, taken out of it: nothing is installed, so no server starts. */
export const promtool = (): string | null => {
  const at = join(folder, "promtool")
  return tool("promtool", at, () => {
    const work = mkdtempSync(join(folder, "prometheus-"))
    try {
      if (!quiet("apt-get", ["download", "prometheus"], { cwd: work })) return false
      const [name = ""] = readdirSync(work)
      if (!quiet("dpkg-deb", ["-x", name, "files"], { cwd: work })) return false
      copyFileSync(join(work, "files/usr/bin/promtool"), at)
      return true
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  })
}

/** Built from source by Go, which takes minutes the first time. */
export const helm = (): string | null => {
  const at = join(folder, "helm")
  const env = { ...process.env, GOBIN: folder, GOFLAGS: "-modcacherw" }
  return tool("helm", at, () => quiet("go", ["install", HELM], { env, timeout: minutes(30) }))
}

export const kubernetesValidate = (): string | null => {
  const venv = join(folder, "python")
  const at = join(venv, "bin/kubernetes-validate")
  return tool("kubernetes-validate", at, () =>
    quiet("python3", ["-m", "venv", venv]) &&
    quiet(join(venv, "bin/pip"), ["install", "--quiet", KUBERNETES_VALIDATE]))
}

/** The command that compose files are read with: Docker's plugin, or the program of before. */
export const compose = (): ReadonlyArray<string> | null => {
  if (quiet("docker", ["compose", "version"])) return ["docker", "compose"]
  const path = onPath("docker-compose")
  if (path !== null) return [path]
  const installs = process.getuid?.() === 0 &&
    quiet("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "docker-compose"])
  if (installs) return ["docker-compose"]
  console.log("docker compose is not here and cannot be installed: the compose file is not checked")
  return null
}

export const systemdAnalyze = (): string | null => tool("systemd-analyze", join(folder, "systemd-analyze"), () => false)
