import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { spawn } from "node:child_process"
import { claimInstance } from "../../src/mirror/instance.ts"
import { unique } from "../kit/names.ts"
import { projectRoot } from "../kit/paths.ts"

const claim = (flow: string, scope: Scope.Scope) => Scope.provide(claimInstance(flow, null), scope)

/** Another process that holds a name of the flow until it is killed; resolves with the name. */
const otherProcess = async (flow: string) => {
  const script = `
    import { Effect, Scope } from "effect"
    import { claimInstance } from "./src/mirror/instance.ts"
    const scope = Effect.runSync(Scope.make())
    console.log(await Effect.runPromise(Scope.provide(claimInstance(${JSON.stringify(flow)}, null), scope)))
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: projectRoot,
    stdio: ["ignore", "pipe", "inherit"]
  })
  const name = await new Promise<string>((resolve) =>
    child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim()))
  )
  const ended = new Promise((resolve) => child.once("close", resolve))
  return {
    name,
    kill: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}

describe("the instance in transactional ids", () => {
  it.effect("is the configured one, where there is one", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* claimInstance("f", "pod-3"), "pod-3")
    }))

  it.effect("two holders on one host have two names; what is let go is taken again", () =>
    Effect.gen(function*() {
      const flow = unique("flow")
      const first = yield* Scope.make()
      const one = yield* claim(flow, first)
      const two = yield* claim(flow, yield* Effect.scope)
      assert.notStrictEqual(one, two)
      yield* Scope.close(first, Exit.void)
      assert.strictEqual(yield* claim(flow, yield* Effect.scope), one)
    }))

  it("a process that was killed leaves its name to the one that comes after it, not to one that runs beside it", async () => {
    const flow = unique("flow")
    const dead = await otherProcess(flow)
    const beside = await otherProcess(flow)
    assert.notStrictEqual(beside.name, dead.name)
    await dead.kill()
    const after = await otherProcess(flow)
    assert.strictEqual(after.name, dead.name)
    await Promise.all([beside.kill(), after.kill()])
  })

  it("several that come after a killed one at the same moment have names of their own", async () => {
    const flow = unique("flow")
    const dead = await otherProcess(flow)
    await dead.kill()
    const names = await Effect.runPromise(
      Effect.scoped(
        Effect.flatMap(Effect.scope, (scope) =>
          Effect.all(
            Array.from({ length: 6 }, () => claim(flow, scope)),
            { concurrency: "unbounded" }
          ))
      )
    )
    assert.lengthOf([...new Set(names)], 6, names.join(" "))
    assert.include(names, dead.name)
  })
})
