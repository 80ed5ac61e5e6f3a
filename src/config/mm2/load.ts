/**
 * `onceover import-mm2`: a file of MirrorMaker 2 to the text of a configuration.
 *
 * Guarantee: what comes out loads: values are checked as the loader checks them, but for those that hold references,
 * which only the machine that runs the flows can follow.
 */
import { Effect, Result } from "effect"
import { basename, dirname, resolve } from "node:path"
import { resolveFile } from "../file.ts"
import { type ConfigError, failWith, type Problem, problem } from "../problems.ts"
import { readText } from "../readText.ts"
import type { Tree } from "../tree.ts"
import { asTree } from "./asTree.ts"
import { SECRET_COMMENT } from "./clientRules.ts"
import type { Draft } from "./draft.ts"
import { importMm2 } from "./import.ts"
import { readMm2 } from "./written.ts"
import { asYaml } from "./yaml.ts"

const hasReference = (root: Tree, path: string): boolean => {
  const value = (tree: Tree, at: string): boolean =>
    typeof tree === "string"
      ? tree.includes("${") && (path === at || path.startsWith(at) || at.startsWith(path))
      : typeof tree === "object" && tree !== null &&
        Object.entries(tree).some(([key, inner]) =>
          value(inner as Tree, Array.isArray(tree) ? `${at}[${key}]` : at === "" ? key : `${at}.${key}`)
        )
  return value(root, "")
}

const check = (draft: Draft, path: string): ReadonlyArray<Problem> => {
  const { together, tree } = asTree(draft)
  const { problems } = resolveFile({ path, folder: dirname(resolve(path)), source: tree, root: tree.root })
  return together(draft.problems, problems.filter((p) => !hasReference(tree.root, p.path)))
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
}

export interface Imported {
  readonly yaml: string
  /** A password or key stands in it in clear text. */
  readonly secrets: boolean
}

const NOT_MM2 = problem("", "is no file of MirrorMaker 2", {
  allowed: "a properties file with clusters, or a MirrorSourceConnector's settings as properties or JSON"
})

/** Fails with ConfigError for what is no file of MirrorMaker 2, and for whatever of it cannot be had here. */
export const importFile = (path: string): Effect.Effect<Imported, ConfigError> =>
  Effect.gen(function*() {
    const read = yield* Effect.result(readText(path))
    if (Result.isFailure(read)) return yield* failWith(path, [problem("", `cannot be read: ${read.failure}`)])
    const file = readMm2(path, read.success)
    if (file === null) return yield* failWith(path, [NOT_MM2])
    const draft = importMm2(file)
    const problems = check(draft, path)
    if (problems.length > 0) return yield* failWith(path, problems)
    const yaml = asYaml(draft, basename(path))
    return { yaml, secrets: yaml.includes(SECRET_COMMENT) }
  })
