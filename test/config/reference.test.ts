import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { configurationReference } from "../../src/config/reference.ts"
import { metricsReference } from "../../src/metrics/reference.ts"
import { projectRoot } from "../kit/paths.ts"

const page = (name: string): string => readFileSync(join(projectRoot, "docs", name), "utf8")

describe("the pages made from the code", () => {
  it("docs/configuration.md is current (npm run docs)", () =>
    assert.strictEqual(page("configuration.md"), configurationReference()))
  it("docs/metrics.md is current (npm run docs)", () => assert.strictEqual(page("metrics.md"), metricsReference()))
})
