/** Which program `bin/onceover` of a clone runs: a bundle is quicker, and must never be one of other sources. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll } from "vitest"
import { makeWorkFolder, projectRoot } from "../kit/paths.ts"

const folder = makeWorkFolder("program")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

const runs = (): string => execFileSync(join(folder, "bin/onceover"), { encoding: "utf8" }).trim()

/** A clone whose program says what it is, and the bundle of it as it is now. */
const clone = (): void => {
  for (const path of ["bin/onceover", "scripts/with-node.sh", "scripts/sources.sh", "scripts/bundle.ts"]) {
    cpSync(join(projectRoot, path), join(folder, path))
  }
  write(".tools/node-bin", dirname(process.execPath))
  write("package.json", `{"type":"module"}`)
  write("package-lock.json", "{}")
  write("src/cli/main.ts", `console.log("sources")`)
  write("src/mirror/lane.ts", "export const lanes = 1")
  const sum = execFileSync("sh", [join(folder, "scripts/sources.sh")], { encoding: "utf8" }).trim()
  write(`.tools/program/${sum}/main.js`, `console.log("bundle")`)
}

describe("the program of a clone", () => {
  it("is the bundle of these very sources, and the sources as soon as anything has changed", () => {
    clone()
    assert.strictEqual(runs(), "bundle")
    const lane = join(folder, "src/mirror/lane.ts")
    const { atime, mtime } = statSync(lane)
    const changes: ReadonlyArray<readonly [what: string, change: () => void, back: () => void]> = [
      ["an edit that keeps size and time", () => {
        writeFileSync(lane, "export const lanes = 2")
        utimesSync(lane, atime, mtime)
      }, () => writeFileSync(lane, "export const lanes = 1")],
      ["a file more", () => write("src/more.ts", ""), () => rmSync(join(folder, "src/more.ts"))],
      ["a file elsewhere", () => renameSync(lane, `${lane}x`), () => renameSync(`${lane}x`, lane)],
      ["other packages", () => write("package-lock.json", "[]"), () => write("package-lock.json", "{}")]
    ]
    for (const [what, change, back] of changes) {
      change()
      assert.strictEqual(runs(), "sources", what)
      back()
      assert.strictEqual(runs(), "bundle", `${what}, and back`)
    }
  })
})
