/**
 * DescribeConfigs (KIP-133; v1: sources and synonyms, KIP-226; v3: documentation and types, KIP-569).
 *
 * Starts at 1, the first version that says where a value comes from. Resource types: 2 topic, 4 broker, 8 broker
 * logger, 16 client metrics, 32 group.
 */
import { arr, bool, defineApi, int16, int32, int8, narr, nstr, str } from "../schema.ts"

export const describeConfigs = defineApi({
  key: 32,
  name: "DescribeConfigs",
  versions: "1-4",
  flexible: 4,
  request: {
    resources: arr("0+", {
      resourceType: int8("0+"),
      resourceName: str("0+"),
      configurationKeys: narr("0+", "0+", str("0+"))
    }),
    includeSynonyms: bool("1+", { default: false }),
    includeDocumentation: bool("3+", { default: false })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    results: arr("0+", {
      errorCode: int16("0+"),
      errorMessage: nstr("0+", "0+"),
      resourceType: int8("0+"),
      resourceName: str("0+"),
      configs: arr("0+", {
        name: str("0+"),
        value: nstr("0+", "0+"),
        readOnly: bool("0+"),
        configSource: int8("1+", { default: -1 }),
        isSensitive: bool("0+"),
        synonyms: arr("1+", { name: str("1+"), value: nstr("1+", "0+"), source: int8("1+") }),
        configType: int8("3+", { default: 0, ignorable: true }),
        documentation: nstr("3+", "0+", { default: "", ignorable: true })
      })
    })
  }
})
