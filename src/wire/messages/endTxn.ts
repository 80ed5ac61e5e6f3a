/**
 * EndTxn (KIP-98; v4 and 5: KIP-890).
 *
 * From version 5 on the answer carries the producer id and epoch for the next transaction; it may only be used where
 * transaction.version is 2, and must be held to 4 where it is not.
 */
import { bool, defineApi, int16, int32, int64, str } from "../schema.ts"

export const endTxn = defineApi({
  key: 26,
  name: "EndTxn",
  versions: "0-5",
  flexible: 3,
  request: {
    transactionalId: str("0+"),
    producerId: int64("0+"),
    producerEpoch: int16("0+"),
    committed: bool("0+")
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    producerId: int64("5+", { default: -1, ignorable: true }),
    producerEpoch: int16("5+", { default: -1, ignorable: true })
  }
})
