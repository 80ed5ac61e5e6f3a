/** `npm run docs`: writes the pages that are made from the code; test/config/reference.test.ts fails while they are old. */
import { mkdirSync, writeFileSync } from "node:fs"
import { configurationReference } from "../src/config/reference.ts"
import { metricsReference } from "../src/metrics/reference.ts"

const folder = new URL("../docs/", import.meta.url)
mkdirSync(folder, { recursive: true })
writeFileSync(new URL("configuration.md", folder), configurationReference())
writeFileSync(new URL("metrics.md", folder), metricsReference())
