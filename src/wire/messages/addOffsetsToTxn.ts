/** AddOffsetsToTxn (KIP-98; v2: PRODUCER_FENCED, KIP-588; v4: KIP-890). */
import { defineApi, int16, int32, int64, str } from "../schema.ts"

export const addOffsetsToTxn = defineApi({
  key: 25,
  name: "AddOffsetsToTxn",
  versions: "0-4",
  flexible: 3,
  request: {
    transactionalId: str("0+"),
    producerId: int64("0+"),
    producerEpoch: int16("0+"),
    groupId: str("0+")
  },
  response: { throttleTimeMs: int32("0+", { default: 0 }), errorCode: int16("0+") }
})
