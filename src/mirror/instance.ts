/**
 * What tells the lanes of this process from those of others that run the same flow: part of their transactional ids
 * (docs/ledger.md R9). Stable through restarts, so that a lane that starts again fences its older self and ends the
 * transaction that it may have left open.
 *
 * The name is `instance.id`, where the configuration has one, else the host's name and the lowest number that no other
 * process of this host and flow holds. A number is held by listening on a local socket: the kernel lets go of it when
 * the process ends, however it ends.
 *
 * Gotchas: elsewhere than on Linux two processes that start in the same moment after a third was killed may take one
 * number; a name is known in its network name space only. Two machines with one host name and no `instance.id` share their transactional ids: safe, but they fence
 * each other, and the ledger stops them with that reason.
 */
import { Effect, Random, type Scope } from "effect"
import { createHash } from "node:crypto"
import { rmSync } from "node:fs"
import { connect, createServer, type Server } from "node:net"
import { hostname, tmpdir, userInfo } from "node:os"
import { join } from "node:path"

/** More processes of one flow on one host than anybody runs. */
const MAX_PER_HOST = 100

/** Hosts' names may hold what is awkward in a transactional id; 60 characters are enough to tell them apart. */
const plain = (name: string): string => name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 60)

/**
 * On Linux in the kernel's own name space: nothing stays behind when a process is killed, so nobody has to clear away
 * after another, and several that start at the same moment cannot take one name. Elsewhere a file.
 */
const pathOf = (flow: string, n: number): string => {
  const id = createHash("sha256").update(`${userInfo().uid}/${flow}`).digest("hex").slice(0, 16)
  return process.platform === "linux" ? `\0onceover-${id}-${n}` : join(tmpdir(), `onceover-${id}-${n}.sock`)
}

const listen = (path: string): Effect.Effect<Server | "taken" | "impossible"> =>
  Effect.callback((resume) => {
    const server = createServer((socket) => socket.destroy())
    server.once("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.succeed(error.code === "EADDRINUSE" ? "taken" : "impossible")))
    server.listen(path, () => {
      // Waiting for others to ask is no reason to stay alive.
      server.unref()
      resume(Effect.succeed(server))
    })
  })

/** Whether a process listens there; what a killed one left behind answers nobody. */
const alive = (path: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const socket = connect(path)
    const answer = (is: boolean): void => {
      socket.destroy()
      resume(Effect.succeed(is))
    }
    socket.once("connect", () => answer(true))
    socket.once("error", () => answer(false))
  })

const take = (path: string): Effect.Effect<Server | "taken" | "impossible"> =>
  Effect.gen(function*() {
    const first = yield* listen(path)
    if (first !== "taken" || path.startsWith("\0") || (yield* alive(path))) return first
    yield* Effect.ignore(Effect.try(() => rmSync(path, { force: true })))
    return yield* listen(path)
  })

/** Holds a name until the scope closes. Never fails: where no number can be held, the name is a random one. */
export const claimInstance = (flow: string, configured: string | null): Effect.Effect<string, never, Scope.Scope> =>
  Effect.gen(function*() {
    if (configured !== null) return configured
    for (let n = 0; n < MAX_PER_HOST; n++) {
      const held = yield* Effect.acquireRelease(
        take(pathOf(flow, n)),
        (taken) => typeof taken === "string" ? Effect.void : Effect.sync(() => void taken.close())
      )
      if (typeof held !== "string") return `${plain(hostname())}-${n}`
      if (held === "impossible") break
    }
    return `${plain(hostname())}-${(yield* Random.nextIntBetween(36 ** 9, 36 ** 10)).toString(36)}`
  })
