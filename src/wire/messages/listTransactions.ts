/** ListTransactions (KIP-664; v1: by duration, KIP-994; v2: by pattern, KIP-1152). */
import { arr, defineApi, int16, int32, int64, nstr, str } from "../schema.ts"

export const listTransactions = defineApi({
  key: 66,
  name: "ListTransactions",
  versions: "0-2",
  flexible: 0,
  request: {
    stateFilters: arr("0+", str("0+")),
    producerIdFilters: arr("0+", int64("0+")),
    durationFilter: int64("1+", { default: -1 }),
    transactionalIdPattern: nstr("2+", "2+", { default: null })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    unknownStateFilters: arr("0+", str("0+")),
    transactionStates: arr("0+", {
      transactionalId: str("0+"),
      producerId: int64("0+"),
      transactionState: str("0+")
    })
  }
})
