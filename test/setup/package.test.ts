/** The npm package as whoever installs it gets it: packed, unpacked into an empty folder, imported, run, type-checked. */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { projectRoot } from "../kit/paths.ts"

const run = promisify(execFile)
const options = { timeout: 240_000, maxBuffer: 16 * 1024 * 1024 }

/** A folder with the package in node_modules and what the package depends on, and nothing else that is ours. */
const install = async (folder: string): Promise<void> => {
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder], {
    ...options,
    cwd: projectRoot
  })
  const name = /"filename":\s*"([^"]+)"/.exec(stdout)?.[1] ?? ""
  const modules = join(folder, "node_modules")
  mkdirSync(join(modules, "onceover"), { recursive: true })
  await run("tar", ["-xzf", join(folder, name), "--strip-components=1", "-C", join(modules, "onceover")], options)
  for (const dependency of readdirSync(join(projectRoot, "node_modules"))) {
    if (dependency === "onceover" || dependency.startsWith(".")) continue
    symlinkSync(join(projectRoot, "node_modules", dependency), join(modules, dependency))
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "user", type: "module" }))
}

const PROGRAM = `
import { Effect, Exit, Layer, Result } from "effect"
import { ConfigError, Mirror, parseConfig, type ServiceError, VERSION } from "onceover"

const text = "clusters: { a: { bootstrap.servers: '127.0.0.1:1' }, b: { bootstrap.servers: '127.0.0.1:2' } }\\n" +
  "flows: [{ source: a, target: b, topics: [t] }]\\nhttp: { listen: '127.0.0.1:0' }\\n"

const layer: Layer.Layer<Mirror, ServiceError | ConfigError> = Layer.unwrap(
  Effect.map(parseConfig(text, {}, "here.yaml"), Mirror.layer)
)
const program = Effect.gen(function*() {
  const { status } = yield* Mirror
  return (yield* status).flows.length
})
const exit = await Effect.runPromiseExit(Effect.scoped(program.pipe(Effect.provide(layer))))
const wrong = await Effect.runPromise(Effect.result(parseConfig("flows: 1", {}, "wrong.yaml")))
console.log(JSON.stringify({
  version: VERSION,
  failed: Exit.isFailure(exit) && String(exit.cause.reasons.map((r) => r._tag === "Fail" ? r.error.message : "")),
  wrong: Result.isFailure(wrong) && wrong.failure instanceof ConfigError
}))
process.exit(0)
`

describe("the npm package", () => {
  const folder = mkdtempSync(join(tmpdir(), "onceover-package-"))
  const inside = join(folder, "node_modules/onceover")
  beforeAll(() => install(folder), 240_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("runs as a program, without a setup", async () => {
    const { version } = JSON.parse(readFileSync(join(inside, "package.json"), "utf8")) as { version: string }
    const { stdout } = await run(join(inside, "bin/onceover"), ["--version"], options)
    assert.strictEqual(stdout, `${version}\n`)
  })

  it("has in its program all that a service needs until it meets a cluster", async () => {
    const file = join(folder, "flows.json")
    const [a, b] = ["127.0.0.1:1", "127.0.0.1:2"].map((at) => ({ "bootstrap.servers": at }))
    const flows = [{ source: "a", target: "b", topics: ["t"], "group.protocol": "consumer" }]
    writeFileSync(file, JSON.stringify({ clusters: { a, b }, flows, http: { listen: "127.0.0.1:0" } }))
    const failed = await run(join(inside, "bin/onceover"), ["run", file], options).catch((error: unknown) => error)
    const { code, stderr, stdout } = failed as {
      readonly code: number
      readonly stdout: string
      readonly stderr: string
    }
    assert.deepStrictEqual([code, stderr], [1, ""])
    assert.match(stdout, /status at http:.*\n(?:.*\n)*.*127\.0\.0\.1:1: nothing listens there/)
  })

  it("can be embedded as a layer, whose types a strict program takes and whose failures are values", async () => {
    writeFileSync(join(folder, "program.ts"), PROGRAM)
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          exactOptionalPropertyTypes: true,
          module: "nodenext",
          target: "es2024",
          lib: ["es2024"],
          types: ["node"],
          skipLibCheck: true,
          noEmit: true
        },
        files: ["program.ts"]
      })
    )
    await run(join(projectRoot, "node_modules/.bin/tsc"), ["-p", folder], options)
    const { stdout } = await run(process.execPath, ["program.ts"], { ...options, cwd: folder })
    const told = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Record<string, unknown>
    assert.match(String(told["failed"]), /^flow a->b: .*127\.0\.0\.1:/)
    assert.isTrue(told["wrong"])
  })

  it("holds what runs and nothing of the tests or the machine it was made on", () => {
    const all = readdirSync(inside, { recursive: true, encoding: "utf8" })
    for (
      const path of [
        "dist/index.d.ts",
        "dist/metrics/page/index.html",
        "dist/program/main.js",
        "bin/onceover",
        "README.md"
      ]
    ) {
      assert.include(all, path)
    }
    const foreign = all.filter((path) =>
      /^(?:test|scripts|src|node_modules|\.tools)(?:\/|$)/.test(path) ||
      (path.endsWith(".ts") && !path.endsWith(".d.ts"))
    )
    assert.deepStrictEqual(foreign, [])
    const code = all.filter((path) => path.endsWith(".js")).map((path) => readFileSync(join(inside, path), "utf8"))
      .join("")
    assert.notMatch(code, /^import .*from "\.[^"]*\.ts"/m)
    assert.notInclude(code, projectRoot)
  })
})
