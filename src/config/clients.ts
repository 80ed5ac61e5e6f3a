/** The client settings of a flow's two ends: the cluster's, with the flow's overrides over them. */
import type { ClientSettingValues, ResolvedConfig, ResolvedFlow } from "./types.ts"

const ofCluster = (config: ResolvedConfig, alias: string): ClientSettingValues =>
  config.clusters.get(alias)?.settings ?? {}

/** For reading the source. */
export const sourceSettings = (config: ResolvedConfig, flow: ResolvedFlow): ClientSettingValues => ({
  ...ofCluster(config, flow.source),
  ...flow.consumerOverrides,
  // Said on several levels; the resolved ones are in force.
  "auto.offset.reset": flow.autoOffsetReset,
  "isolation.level": flow.isolationLevel
})

/** For writing to the target. */
export const targetSettings = (config: ResolvedConfig, flow: ResolvedFlow): ClientSettingValues => ({
  ...ofCluster(config, flow.target),
  ...flow.producerOverrides
})

/** For creating topics and reading settings on either end. */
export const adminSettings = (
  config: ResolvedConfig,
  flow: ResolvedFlow,
  end: "source" | "target"
): ClientSettingValues => ({
  ...ofCluster(config, flow[end]),
  ...flow.adminOverrides
})
