/**
 * ApiVersions (KIP-35; v3: KIP-511, KIP-584 features; v4: features that start at level 0).
 *
 * Gotchas: the response header is always version 0, without tagged fields, in every version (KIP-511), so that a
 * client can read the answer of a broker of any age; the request header is flexible from version 3. A broker that
 * does not know the version we ask answers UNSUPPORTED_VERSION in the form of version 0. Version 5 (KIP-1242) only
 * lets a broker refuse a client that came to the wrong cluster; we compare the cluster id ourselves.
 */
import { arr, bool, defineApi, int16, int32, int64, str } from "../schema.ts"

export const apiVersions = defineApi({
  key: 18,
  name: "ApiVersions",
  versions: "0-4",
  flexible: 3,
  request: {
    clientSoftwareName: str("3+", { default: "", ignorable: true }),
    clientSoftwareVersion: str("3+", { default: "", ignorable: true })
  },
  response: {
    errorCode: int16("0+"),
    apiKeys: arr("0+", { apiKey: int16("0+"), minVersion: int16("0+"), maxVersion: int16("0+") }),
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    supportedFeatures: arr("3+", {
      name: str("3+"),
      minVersion: int16("3+"),
      maxVersion: int16("3+")
    }, { default: [], tag: 0, tagged: "3+", ignorable: true }),
    finalizedFeaturesEpoch: int64("3+", { default: -1, tag: 1, tagged: "3+", ignorable: true }),
    finalizedFeatures: arr("3+", {
      name: str("3+"),
      maxVersionLevel: int16("3+"),
      minVersionLevel: int16("3+")
    }, { default: [], tag: 2, tagged: "3+", ignorable: true }),
    zkMigrationReady: bool("3+", { default: false, tag: 3, tagged: "3+", ignorable: true })
  }
})
