/**
 * Two projects: `unit` (no broker, many at once) and `integration` (real brokers, one pair of clusters for all files
 * that do not break them, see test/kit/shared.ts). `npx vitest run --project unit` runs one of them.
 */
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    allowOnly: false,
    restoreMocks: true,
    teardownTimeout: 30_000,
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/integration/**"],
          testTimeout: 60_000
        }
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          globalSetup: ["test/kit/globalSetup.ts"],
          pool: "forks",
          maxWorkers: 2,
          // Bounds, not expectations: every wait inside has a bound of its own that tells what was waited for.
          testTimeout: 240_000,
          hookTimeout: 180_000
        }
      }
    ]
  }
})
