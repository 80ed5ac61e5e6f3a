/** Where things of this project are, whatever folder the tests were started from. */
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"

export const projectRoot = resolve(import.meta.dirname, "../..")

/** A new folder under .work, which git ignores. Whoever asks for it removes it. */
export const makeWorkFolder = (prefix: string): string => {
  const parent = join(projectRoot, ".work")
  mkdirSync(parent, { recursive: true })
  return mkdtempSync(join(parent, `${prefix}-`))
}

export interface Versions {
  readonly node: string
  readonly kafka: string
  readonly kafkaOld: string
  readonly log4j: string
  readonly mirrorMaker: string
}

/** The pinned versions, from the one place that has them. */
export const versions = JSON.parse(readFileSync(join(projectRoot, "scripts/versions.json"), "utf8")) as Versions
