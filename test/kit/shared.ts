/**
 * The pair of clusters that all integration tests of a run share. For tests that do not kill, freeze or configure
 * brokers; those start clusters of their own. Every test uses names of its own: see `unique`.
 */
import { inject } from "vitest"

export interface SharedCluster {
  readonly bootstrap: string
  readonly clusterId: string
  readonly version: string
  /** Where its broker has its log and its segments (segments.ts). */
  readonly logDir: string
}

export interface SharedClusters {
  readonly source: SharedCluster
  readonly target: SharedCluster
}

declare module "vitest" {
  interface ProvidedContext {
    sharedClusters: SharedClusters
  }
}

export const sharedClusters = (): SharedClusters => inject("sharedClusters")

export { unique } from "./names.ts"
