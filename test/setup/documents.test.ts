/** What the pages in docs/ refer to is there: files, headings of none, tests by name, settings by key. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { projectRoot } from "../kit/paths.ts"

const pages = [
  "README.md",
  "deploy/README.md",
  "browser/README.md",
  ...readdirSync(join(projectRoot, "docs"))
    .filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)
]
const read = (path: string): string => readFileSync(join(projectRoot, path), "utf8")

describe("the pages for people", () => {
  it("link to nothing that is not there", () => {
    const broken = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
        .map(([, link = ""]) => link)
        .filter((link) => !existsSync(resolve(projectRoot, dirname(page), link)))
        .map((link) => `${page}: ${link}`)
    )
    assert.deepStrictEqual(broken, [])
  })

  it("name only tests that there are", () => {
    const cited = [...read("docs/limits.md").matchAll(/`((?:test|testcontainers|browser)\/[^`]+\.ts)`\s+"([^"]+)"/g)]
    assert.isAbove(cited.length, 25)
    const missing = cited.filter(([, file = "", name = ""]) =>
      !existsSync(join(projectRoot, file)) || !read(file).includes(name)
    ).map(([, file, name]) => `${file}: ${name}`)
    assert.deepStrictEqual(missing, [])
  })

  it("answer each of the twenty-five problems", () => {
    const numbers = [...read("docs/limits.md").matchAll(/^### (\d+)\. /gm)].map(([, n]) => Number(n))
    assert.deepStrictEqual(numbers, Array.from({ length: 25 }, (_, n) => n + 1))
  })

  it("name only commands of npm that there are", () => {
    const { scripts } = JSON.parse(read("package.json")) as { readonly scripts: Readonly<Record<string, string>> }
    const missing = pages.flatMap((page) =>
      [...read(page).matchAll(/npm run ([a-z0-9:-]+)/g)].map(([, name = ""]) => name)
        .filter((name) => !Object.hasOwn(scripts, name)).map((name) => `${page}: npm run ${name}`)
    )
    assert.deepStrictEqual(missing, [])
  })
})
