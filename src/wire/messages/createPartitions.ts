/** CreatePartitions (KIP-195; v3: throttled by quota, KIP-599). */
import { arr, bool, defineApi, int16, int32, narr, nstr, str } from "../schema.ts"

export const createPartitions = defineApi({
  key: 37,
  name: "CreatePartitions",
  versions: "0-3",
  flexible: 2,
  request: {
    topics: arr("0+", {
      name: str("0+"),
      count: int32("0+"),
      assignments: narr("0+", "0+", { brokerIds: arr("0+", int32("0+")) })
    }),
    timeoutMs: int32("0+"),
    validateOnly: bool("0+")
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    results: arr("0+", {
      name: str("0+"),
      errorCode: int16("0+"),
      errorMessage: nstr("0+", "0+", { default: null })
    })
  }
})
