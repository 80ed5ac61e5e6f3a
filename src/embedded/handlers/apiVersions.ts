/** ApiVersions: what a broker here offers. */
import { apiVersions } from "../../wire/messages/apiVersions.ts"
import { code } from "../model/codes.ts"
import { type Handler, handler } from "./handler.ts"

export const makeApiVersionsHandler = (offered: () => ReadonlyArray<Handler>): Handler =>
  handler(apiVersions, ({ state }) => {
    const features = [...state.features].filter(([, feature]) => feature.level > 0)
    return {
      errorCode: code.NONE,
      apiKeys: offered().map(({ api }) => ({
        apiKey: api.key,
        minVersion: api.versions.min,
        maxVersion: api.versions.max
      }))
        .sort((a, b) => a.apiKey - b.apiKey),
      supportedFeatures: [...state.features].map(([name, { min, max }]) => ({
        name,
        minVersion: min,
        maxVersion: max
      })),
      finalizedFeaturesEpoch: 1,
      finalizedFeatures: features.map(([name, { level }]) => ({ name, maxVersionLevel: level, minVersionLevel: level }))
    }
  })
