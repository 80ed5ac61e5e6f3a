/**
 * Produce (v8: errors per record, KIP-467; v10: new leaders in the answer, KIP-951; v11-12: KIP-890; v13: topic ids,
 * KIP-516).
 *
 * Starts at 3, the first version with record batches of magic 2. Versions 12 and up add the partition to the
 * transaction by themselves: a transactional producer may only use them where transaction.version is 2, and must
 * hold itself to 11 where it is not. `records` is one record batch (the broker refuses more) and is not copied.
 */
import { arr, defineApi, int16, int32, int64, nstr, records, str, struct, uuid, ZERO_UUID } from "../schema.ts"

export const produce = defineApi({
  key: 0,
  name: "Produce",
  versions: "3-13",
  flexible: 9,
  request: {
    transactionalId: nstr("3+", "3+", { default: null }),
    acks: int16("0+"),
    timeoutMs: int32("0+"),
    topicData: arr("0+", {
      name: str("0-12", { default: "", ignorable: true }),
      topicId: uuid("13+", { default: ZERO_UUID, ignorable: true }),
      partitionData: arr("0+", { index: int32("0+"), records: records("0+", "0+") })
    })
  },
  response: {
    responses: arr("0+", {
      name: str("0-12", { default: "", ignorable: true }),
      topicId: uuid("13+", { default: ZERO_UUID, ignorable: true }),
      partitionResponses: arr("0+", {
        index: int32("0+"),
        errorCode: int16("0+"),
        baseOffset: int64("0+"),
        logAppendTimeMs: int64("2+", { default: -1 }),
        logStartOffset: int64("5+", { default: -1, ignorable: true }),
        recordErrors: arr("8+", {
          batchIndex: int32("8+"),
          batchIndexErrorMessage: nstr("8+", "8+", { default: null })
        }, { default: [], ignorable: true }),
        errorMessage: nstr("8+", "8+", { default: null, ignorable: true }),
        currentLeader: struct("10+", {
          leaderId: int32("10+", { default: -1 }),
          leaderEpoch: int32("10+", { default: -1 })
        }, { optional: true, tag: 0, tagged: "10+" })
      })
    }),
    throttleTimeMs: int32("1+", { default: 0 }),
    nodeEndpoints: arr("10+", {
      nodeId: int32("10+"),
      host: str("10+"),
      port: int32("10+"),
      rack: nstr("10+", "10+", { default: null })
    }, { default: [], tag: 0, tagged: "10+" })
  }
})
