/** IncrementalAlterConfigs (KIP-339). Operations: 0 set, 1 delete, 2 append, 3 subtract. */
import { arr, bool, defineApi, int16, int32, int8, nstr, str } from "../schema.ts"

export const incrementalAlterConfigs = defineApi({
  key: 44,
  name: "IncrementalAlterConfigs",
  versions: "0-1",
  flexible: 1,
  request: {
    resources: arr("0+", {
      resourceType: int8("0+"),
      resourceName: str("0+"),
      configs: arr("0+", { name: str("0+"), configOperation: int8("0+"), value: nstr("0+", "0+") })
    }),
    validateOnly: bool("0+")
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    responses: arr("0+", {
      errorCode: int16("0+"),
      errorMessage: nstr("0+", "0+"),
      resourceType: int8("0+"),
      resourceName: str("0+")
    })
  }
})
