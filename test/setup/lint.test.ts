/** The rules of the house are held by the linter: each must fail on what it bans, or it holds nothing. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { projectRoot } from "../kit/paths.ts"

/** What oxlint says of a file with this text at this place of the project. */
const lint = (place: string, text: string): string => {
  const folder = join(projectRoot, place, `lint-probe-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(join(folder, "probe.ts"), text)
    const oxlint = join(projectRoot, "node_modules/.bin/oxlint")
    const { stdout } = spawnSync(process.execPath, [oxlint, "--format=unix", folder], {
      cwd: projectRoot,
      encoding: "utf8"
    })
    return stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("imports go downward only", () => {
  it("an import from a folder above fails", () => {
    assert.match(
      lint("src/wire", `import { x } from "../../cli/main.ts"\nexport const y = x\n`),
      /src\/wire may not import src\/cli/
    )
  })

  it("an import from a folder beside fails", () => {
    assert.match(
      lint("src/share", `import { x } from "../../group/gap.ts"\nexport const y = x\n`),
      /src\/share may not import src\/group/
    )
  })

  it("so do export-from, import() and a type", () => {
    assert.match(lint("src/group", `export * from "../../mirror/lane.ts"\n`), /src\/group may not import src\/mirror/)
    assert.match(
      lint("src/group", `export const y = () => import("../../mirror/lane.ts")\n`),
      /src\/group may not import src\/mirror/
    )
    assert.match(
      lint("src/config", `export type { Lane } from "../../mirror/lane.ts"\n`),
      /src\/config may not import src\/mirror/
    )
  })

  it("src imports nothing from the tests", () => {
    assert.match(
      lint("src/wire", `import { until } from "../../../test/kit/until.ts"\nexport const y = until\n`),
      /outside of it/
    )
  })

  it("an import from a folder below passes", () => {
    assert.notMatch(lint("src/mirror", `import { x } from "../../wire/bytes.ts"\nexport const y = x\n`), /onceover/)
  })
})

describe("time, chance, console and environment are for the edges", () => {
  for (
    const [what, text] of [
      ["Date.now", "export const t = () => Date.now()"],
      ["new Date()", "export const t = () => new Date()"],
      ["Math.random", "export const t = () => Math.random()"],
      ["setTimeout", "export const t = () => setTimeout(() => 0, 1)"],
      ["console", "export const t = () => console.log(1)"],
      ["process.env", "export const t = () => process.env"]
    ] as const
  ) {
    it(`${what} fails in src/mirror and passes in src/cli`, () => {
      assert.include(lint("src/mirror", `${text}\n`), `${what} is for the edges only`)
      assert.notInclude(lint("src/cli", `${text}\n`), "for the edges only")
    })
  }

  it("a function that is called as something every object has passes", () => {
    const names = Object.getOwnPropertyNames(Object.prototype).filter((name) => /^[a-z]\w+$/i.test(name))
    const calls = names.map((name) => `export const ${name}_ = (${name}: () => number) => ${name}()`)
    assert.isAbove(calls.length, 5)
    assert.notInclude(lint("src/mirror", `${calls.join("\n")}\n`), "for the edges only")
  })
})

describe("the other rules of the house", () => {
  for (
    const [rule, place, text] of [
      ["no-explicit-any", "src/wire", "export const x: any = 1"],
      ["no-default-export", "src/wire", "export default 1"],
      ["no-focused-tests", "test/wire", `import { it } from "@effect/vitest"\nit.only("x", () => undefined)`],
      ["no-disabled-tests", "test/wire", `import { it } from "@effect/vitest"\nit.skip("x", () => undefined)`],
      ["max-lines", "src/wire", "export {}\n".repeat(441)]
    ] as const
  ) {
    it(`${rule} fails in ${place}`, () => assert.include(lint(place, `${text}\n`), rule))
  }
})
