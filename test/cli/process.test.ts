/** The program as a process: exit codes, one line for each failure, signals, crashes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { stringify } from "yaml"
import { VERSION } from "../../src/version.ts"
import { CLI_FIXTURE, type CliEnd, runCli, startCli } from "../kit/cli.ts"
import { minimal, type Plain } from "../kit/configFile.ts"
import { within } from "../kit/until.ts"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "onceover-cli-"))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const file = (name: string, value: unknown): string => {
  const path = join(folder, name)
  writeFileSync(path, typeof value === "string" ? value : stringify(value))
  return path
}
const config = (over: Plain = {}): Plain => minimal({ http: { listen: false }, ...over })

const fixture = (service: string, args: ReadonlyArray<string>) =>
  startCli(args, { script: CLI_FIXTURE, env: { SERVICE: service } })
const logs = (end: CliEnd): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  end.out.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)

describe("the command line", () => {
  it("that is wrong ends with 2 and one line on standard error", async () => {
    for (const end of await Promise.all([[], ["rnu"], ["run"], ["run", "a", "--nope"]].map((args) => runCli(args)))) {
      assert.strictEqual(end.code, 2)
      assert.lengthOf(end.errLines, 1)
      assert.match(end.errLines[0] ?? "", /^onceover: /)
      assert.strictEqual(end.out, "")
    }
  })

  it("--version and --help end with 0 on standard output", async () => {
    const [version, help] = await Promise.all([runCli(["--version"]), runCli(["--help"])])
    assert.deepStrictEqual([version.code, version.out, version.err], [0, `${VERSION}\n`, ""])
    assert.deepStrictEqual([help.code, help.err], [0, ""])
    assert.include(help.out, "until-caught-up")
  })
})

describe("the configuration", () => {
  it("that is wrong ends with 2, one line a problem with file and line, and nothing is started", async () => {
    const path = file("wrong.yaml", minimal({ topicz: 1 }, { "tasks.max": 0 }))
    for (const command of ["run", "check"]) {
      const end = await runCli([command, path])
      assert.strictEqual(end.code, 2)
      assert.strictEqual(end.out, "")
      assert.lengthOf(end.errLines, 2)
      for (const line of end.errLines) assert.match(line, new RegExp(`^${path}:\\d+: `))
    }
  })

  it("that is not there ends with 2 and one line", async () => {
    const end = await runCli(["run", join(folder, "none.yaml")])
    assert.deepStrictEqual([end.code, end.err], [
      2,
      `${join(folder, "none.yaml")}: cannot be read: there is no such file\n`
    ])
  })
})

describe("a service", () => {
  it("that ends, ends with 0, and its log has no secret in it", async () => {
    const end = await fixture("ends", ["run", file("ends.yaml", config()), "--until-caught-up"]).end
    assert.strictEqual(end.code, 0)
    assert.include(end.err, "until caught up")
    const [line] = logs(end)
    assert.deepInclude(line, {
      level: 30,
      msg: "mirroring",
      flow: "f",
      "sasl.password": "<redacted>",
      nested: { "ssl.key.pem": "<redacted>" },
      offset: "9007199254740993"
    })
    assert.notInclude(end.out + end.err, "hunter2")
  })

  it("logs what its level lets through, and for people where that is asked for", async () => {
    const [quiet, pretty] = await Promise.all([
      fixture("quiet", ["run", file("quiet.yaml", config({ log: { level: "error" } }))]).end,
      fixture("quiet", ["run", file("pretty.yaml", config({ log: { format: "pretty" } }))]).end
    ])
    assert.deepStrictEqual(logs(quiet).map((line) => line["msg"]), ["to be seen"])
    assert.match(pretty.out, /INFO.*not to be seen/)
  })

  it("that fails ends with 1 and one line for each reason", async () => {
    const end = await fixture("fails", ["run", file("fails.yaml", config())]).end
    assert.strictEqual(end.code, 1)
    assert.deepStrictEqual(logs(end).map((line) => [line["level"], line["msg"]]), [[60, "flow a: refused"], [
      60,
      "flow b: refused too"
    ]])
  })

  for (
    const [service, words] of [["dies", "internal error: a bug"], [
      "throws",
      "internal error: thrown in the background"
    ], ["rejects", "internal error: rejected in the background"]] as const
  ) {
    it(`that ${service} ends with 1 and one line, without a stack`, async () => {
      const end = await fixture(service, ["run", file(`${service}.yaml`, config())]).end
      assert.strictEqual(end.code, 1)
      const lines = (end.out + end.err).split("\n").filter((line) => line !== "")
      assert.lengthOf(lines, 1)
      assert.include(lines[0], words)
    })
  }

  it("that is interrupted from within has not done its work: 1", async () => {
    const end = await fixture("interrupts", ["run", file("interrupts.yaml", config())]).end
    assert.strictEqual(end.code, 1)
  })

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`that gets ${signal} releases what it holds and ends with 0`, async () => {
      const running = fixture("stops", ["run", file(`${signal}.yaml`, config())])
      await running.saw("started")
      running.signal(signal)
      const end = await running.end
      assert.strictEqual(end.code, 0)
      assert.deepStrictEqual(end.errLines, ["started", "released"])
    })
  }

  it("that a native client holds up ends all the same when it has released what it holds", async () => {
    const pipe = join(folder, "pipe")
    assert.strictEqual(spawnSync("mkfifo", [pipe]).status, 0)
    const running = startCli(["run", file("blocks.yaml", config())], {
      script: CLI_FIXTURE,
      env: { SERVICE: "blocks", PIPE: pipe }
    })
    await running.saw("started")
    running.signal("SIGTERM")
    const end = await within(running.end, { what: "the process to end", timeoutMs: 20_000 }).finally(() =>
      // Lets the thread go, so that nothing is left behind where it has not ended.
      closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK))
    )
    assert.deepStrictEqual([end.code, end.errLines], [0, ["started", "released"]])
  })

  it("that does not stop is ended by a second signal, at once and with 1", async () => {
    const running = fixture("hangs", ["run", file("hangs.yaml", config())])
    await running.saw("started")
    running.signal("SIGTERM")
    await running.saw("stopping")
    running.signal("SIGTERM")
    const end = await running.end
    assert.strictEqual(end.code, 1)
    assert.match(end.errLines.at(-1) ?? "", /^onceover: stopped by a second signal; /)
  })
})

describe("check", () => {
  it("ends with 0 when everything would run and 1 when not, and prints one document with --json", async () => {
    const path = file("check.yaml", config())
    const [good, bad, json] = await Promise.all([
      fixture("ends", ["check", path]).end,
      fixture("fails", ["check", path]).end,
      fixture("ends", ["check", path, "--json"]).end
    ])
    assert.deepStrictEqual([good.code, bad.code, json.code], [0, 1, 0])
    assert.include(good.out, "Every flow would run.")
    assert.include(bad.out, "Not every flow would run.")
    assert.deepStrictEqual(JSON.parse(json.out), { ok: true, clusters: [], flows: [] })
  })
})

describe("the real pipeline", () => {
  const nowhere = (): Plain => ({
    clusters: { east: { "bootstrap.servers": "127.0.0.1:1" }, west: { "bootstrap.servers": "127.0.0.1:1" } }
  })

  it("without a broker ends with 1 and one line that names flow and address", async () => {
    const end = await runCli(["run", file("nowhere.yaml", config(nowhere()))])
    assert.strictEqual(end.code, 1)
    const fatal = logs(end).filter((line) => line["level"] === 60)
    assert.lengthOf(fatal, 1)
    assert.match(String(fatal[0]?.["msg"]), /flow east->west.*127\.0\.0\.1:1/)
  })

  it("on a busy port ends with 1 and one line", async () => {
    const blocker = await new Promise<Server>((resolve) => {
      const server = createServer().listen(0, "127.0.0.1", () => resolve(server))
    })
    try {
      const { port } = blocker.address() as AddressInfo
      const end = await runCli([
        "run",
        file("busy.yaml", config({ ...nowhere(), http: { listen: `127.0.0.1:${port}` } }))
      ])
      assert.strictEqual(end.code, 1)
      assert.deepStrictEqual(logs(end).map((line) => line["msg"]), [
        `cannot listen on 127.0.0.1:${port}: the port is in use; set http.listen to another address, or to false`
      ])
    } finally {
      await Effect.runPromise(Effect.callback<void>((resume) => void blocker.close(() => resume(Effect.void))))
    }
  })
})
