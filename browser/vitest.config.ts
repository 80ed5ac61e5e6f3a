/** The tests that `npm run test:page` runs: the page at "/" in a real browser. */
import { join } from "node:path"
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: join(import.meta.dirname, ".."),
  test: {
    name: "page",
    include: ["browser/*.test.ts"],
    allowOnly: false,
    restoreMocks: true,
    pool: "forks",
    maxWorkers: 1,
    // Bounds, not expectations.
    testTimeout: 120_000,
    hookTimeout: 120_000
  }
})
