/** The setup's decisions and sentences: what a stranger sees whose machine lacks something. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeWorkFolder, projectRoot, versions } from "../kit/paths.ts"

const lib = (script: string, path?: string): { readonly code: number | null; readonly out: string } => {
  const env = path === undefined ? process.env : { PATH: path }
  const { status, stdout } = spawnSync("/bin/sh", [
    "-c",
    `root=${projectRoot}; . ${projectRoot}/scripts/lib.sh; ${script}`
  ], { env, encoding: "utf8" })
  return { code: status, out: stdout.trim() }
}

/** A folder of commands: links to the real ones and scripts of the test. */
const commands = (folder: string, real: ReadonlyArray<string>, made: Readonly<Record<string, string>>): string => {
  const bin = join(folder, "bin")
  mkdirSync(bin)
  for (const name of real) {
    symlinkSync(execFileSync("/bin/sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(), join(bin, name))
  }
  for (const [name, text] of Object.entries(made)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}

const tools = [
  "sh",
  "dirname",
  "mkdir",
  "sed",
  "head",
  "cat",
  "mv",
  "rm",
  "uname",
  "id",
  "mktemp",
  "grep",
  "tail",
  "chmod",
  "sleep",
  "cp",
  "ls",
  "rmdir"
]

/** A copy of the scripts in a folder of its own, where everything up to the add-on is in place already. */
const project = (): string => {
  const folder = makeWorkFolder("setup")
  cpSync(join(projectRoot, "scripts"), join(folder, "scripts"), { recursive: true })
  mkdirSync(join(folder, "node_modules/@confluentinc/kafka-javascript"), { recursive: true })
  writeFileSync(
    join(folder, "node_modules/@confluentinc/kafka-javascript/package.json"),
    `{"version":"0","main":"index.js"}`
  )
  writeFileSync(join(folder, "node_modules/@confluentinc/kafka-javascript/index.js"), "")
  writeFileSync(join(folder, "package-lock.json"), "{}")
  return folder
}

const setup = (
  folder: string,
  real: ReadonlyArray<string>,
  made: Readonly<Record<string, string>>,
  ...args: ReadonlyArray<string>
) => {
  const bin = commands(folder, [...tools, ...real], made)
  const { status, stderr, stdout } = spawnSync("/bin/sh", [join(folder, "scripts/setup.sh"), ...args], {
    env: { PATH: bin, HOME: folder },
    encoding: "utf8",
    timeout: 60_000
  })
  return { code: status, lines: stderr.trim().split("\n"), out: stdout }
}

const node = `exec "${process.execPath}" "$@"`
const npm = "exit 0"
const java = (version: string) => `echo 'openjdk version "${version}" 2025-01-01' >&2`

const withProject = (use: (folder: string) => void) => () => {
  const folder = project()
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("which Node runs us", () => {
  for (const version of ["v22.22.0", "v22.23.1", "v23.0.0", "v24.21.0", "v26.9.0"]) {
    it(`${version} does`, () => assert.strictEqual(lib(`node_fits ${version}`).code, 0))
  }
  for (const version of ["v22.21.9", "v20.20.2", "v18.0.0", "v27.0.0", "", "none", "v22"]) {
    it(`${version || "none"} does not`, () => assert.notStrictEqual(lib(`node_fits "${version}"`).code, 0))
  }
})

describe("the helpers of the setup", () => {
  it(
    "read the major version of a Java, old and new",
    withProject((folder) => {
      const bin = commands(folder, ["sh", "sed", "head"], { java: java("17.0.15") })
      assert.strictEqual(lib("java_major", bin).out, "17")
      writeFileSync(join(bin, "java"), `#!/bin/sh\n${java("1.8.0_402")}\n`)
      assert.strictEqual(lib("java_major", bin).out, "8")
    })
  )

  it("read a pinned version from the one place", () => {
    assert.strictEqual(lib("pinned kafka").out, versions.kafka)
    assert.strictEqual(lib("pinned kafkaOld").out, versions.kafkaOld)
  })

  it("end a command that takes too long, and pass on the status of one that does not", () => {
    assert.strictEqual(lib("limited 1 sleep 60").code, 124)
    assert.strictEqual(lib("limited 30 sh -c 'exit 7'").code, 7)
  })
})

describe("the setup says in one sentence what to do", () => {
  it(
    "without npm",
    withProject((folder) => {
      const { code, lines } = setup(folder, [], {})
      assert.deepStrictEqual([code, lines.length], [1, 1])
      assert.match(lines[0] ?? "", /npm is missing: install Node\.js with npm/)
    })
  )

  it(
    "without Java",
    withProject((folder) => {
      const { code, lines } = setup(folder, [], { node, npm })
      assert.deepStrictEqual([code, lines.length], [1, 1])
      assert.match(lines[0] ?? "", /Java is missing: install a JDK, 17 or newer/)
    })
  )

  it(
    "but wants no Java for the embedded cluster",
    withProject((folder) => {
      const { code, out } = setup(folder, [], { node, npm }, "--without-kafka")
      assert.strictEqual(code, 0)
      assert.notMatch(out, /Kafka|Java/)
    })
  )

  it(
    "with a Java that is too old",
    withProject((folder) => {
      const { code, lines } = setup(folder, [], { node, npm, java: java("11.0.2") })
      assert.deepStrictEqual([code, lines.length], [1, 1])
      assert.match(lines[0] ?? "", /Java 11 is too old for Kafka 4/)
    })
  )

  it(
    "without Maven",
    withProject((folder) => {
      const { code, lines } = setup(folder, [], { node, npm, java: java("17.0.2") })
      assert.deepStrictEqual([code, lines.length], [1, 1])
      assert.match(lines[0] ?? "", /Maven is missing: install it/)
    })
  )

  it(
    "when npm ci fails, and leaves no mark that it had not",
    withProject((folder) => {
      const { code, lines } = setup(folder, [], { node, npm: "echo 'npm error network' ; exit 1" })
      assert.strictEqual(code, 1)
      assert.match(lines.at(-1) ?? "", /npm ci failed .* run npm run setup again/)
      assert.isFalse(existsSync(join(folder, ".tools/packages")))
    })
  )

  it(
    "when Maven cannot fetch, and leaves no folder that looks complete",
    withProject((folder) => {
      const made = { node, npm, java: java("17.0.2"), mvn: "echo '[ERROR] no route'; exit 1" }
      const { code, lines } = setup(folder, [], made)
      assert.strictEqual(code, 1)
      assert.match(lines.at(-1) ?? "", /Kafka \S+ could not be fetched through Maven/)
      assert.isFalse(existsSync(join(folder, ".tools/kafka", versions.kafka)))
    })
  )

  it(
    "when development libraries are missing and may not be installed",
    withProject((folder) => {
      writeFileSync(
        join(folder, "node_modules/@confluentinc/kafka-javascript/index.js"),
        "throw new Error('not built')"
      )
      mkdirSync(join(folder, "node_modules/@mapbox/node-pre-gyp/bin"), { recursive: true })
      writeFileSync(join(folder, "node_modules/@mapbox/node-pre-gyp/bin/node-pre-gyp"), "process.exit(1)")
      const lacking = `case $* in *libssl-dev*) exit 1 ;; *) echo installed ;; esac`
      const refused = { "dpkg-query": lacking, "apt-get": "exit 1", id: "echo 1000" }
      const bin = tools.filter((name) => name !== "id")
      const path = commands(folder, bin, { node, npm, ...refused })
      const { status, stderr } = spawnSync("/bin/sh", [join(folder, "scripts/setup.sh")], {
        env: { PATH: path, HOME: folder },
        encoding: "utf8"
      })
      assert.strictEqual(status, 1)
      assert.match(stderr, /may not be installed from here: run "apt-get install libssl-dev" as root/)
    })
  )
})

describe("bin/onceover", () => {
  it(
    "says what to do when nothing is set up, also through a link",
    withProject((folder) => {
      mkdirSync(join(folder, "bin"))
      cpSync(join(projectRoot, "bin/onceover"), join(folder, "bin/onceover"))
      symlinkSync("bin/onceover", join(folder, "link"))
      const { status, stderr } = spawnSync(join(folder, "link"), ["--version"], { encoding: "utf8", cwd: "/" })
      assert.strictEqual(status, 1)
      assert.match(stderr, /not set up yet: run "npm run setup" in .* first/)
    })
  )
})
