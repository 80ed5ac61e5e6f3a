/**
 * The tests that `npm run test:containers` runs: those of whole mirrors, as they are, with the brokers in containers
 * (test/kit/kafka.ts), and the faults of a network, which only containers can have. Named one by one: a test that
 * reads a broker's files, or wants an older Kafka, stays with processes.
 */
import { join } from "node:path"
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: join(import.meta.dirname, ".."),
  test: {
    name: "containers",
    include: [
      "test/integration/mirrorScaling.test.ts",
      "test/integration/mirrorFaults.test.ts",
      "testcontainers/*.test.ts"
    ],
    globalSetup: ["test/kit/globalSetup.ts"],
    allowOnly: false,
    restoreMocks: true,
    teardownTimeout: 30_000,
    pool: "forks",
    maxWorkers: 2,
    // Bounds, not expectations, as in the configuration of `npm test`.
    testTimeout: 240_000,
    hookTimeout: 180_000
  }
})
