/**
 * Ports that nobody else takes between the choice and the use.
 *
 * - They lie below the range that systems hand out by themselves (Linux 32768 up, macOS and Windows 49152 up), so
 *   an outgoing connection never sits on one, not even while a broker that will come back is dead.
 * - A lock file per port, made with O_EXCL, keeps processes of this user apart; binding once keeps the rest away.
 *
 * Gotcha: a lock is dropped by `releasePorts` or by the reaper (broker.ts) when its owner dies. One left all the
 * same only makes its port unused.
 */
import { randomInt } from "node:crypto"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"

const lowest = 18_000
const highest = 31_999

const lockFolder = (): string => {
  const folder = join(tmpdir(), `onceover-ports-${userInfo().uid}`)
  mkdirSync(folder, { recursive: true })
  return folder
}

export const portLock = (port: number): string => join(lockFolder(), String(port))

const locked = (port: number): boolean => {
  try {
    writeFileSync(portLock(port), String(process.pid), { flag: "wx" })
    return true
  } catch {
    return false
  }
}

const bindable = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(false))
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
  })

/** `count` ports of 127.0.0.1, held until `releasePorts`. */
export const takePorts = async (count: number): Promise<ReadonlyArray<number>> => {
  const taken: Array<number> = []
  for (let tries = 0; taken.length < count && tries < 10_000; tries++) {
    const port = randomInt(lowest, highest + 1)
    if (!locked(port)) continue
    if (await bindable(port)) taken.push(port)
    else rmSync(portLock(port), { force: true })
  }
  if (taken.length < count) throw new Error(`no ${count} free ports between ${lowest} and ${highest}`)
  return taken
}

export const releasePorts = (ports: ReadonlyArray<number>): void => {
  for (const port of ports) rmSync(portLock(port), { force: true })
}
