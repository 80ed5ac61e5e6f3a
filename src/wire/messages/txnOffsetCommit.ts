/**
 * TxnOffsetCommit (KIP-98; v2: leader epochs; v3: member and generation, KIP-447; v4 and 5: KIP-890; v6: topic ids,
 * KIP-1319).
 *
 * Versions 5 and up add the group to the transaction by themselves: they may only be used where transaction.version
 * is 2; hold to 4 where it is not.
 */
import { arr, defineApi, int16, int32, int64, nstr, str, uuid, ZERO_UUID } from "../schema.ts"

export const txnOffsetCommit = defineApi({
  key: 28,
  name: "TxnOffsetCommit",
  versions: "0-6",
  flexible: 3,
  request: {
    transactionalId: str("0+"),
    groupId: str("0+"),
    producerId: int64("0+"),
    producerEpoch: int16("0+"),
    generationIdOrMemberEpoch: int32("3+", { default: -1 }),
    memberId: str("3+", { default: "" }),
    groupInstanceId: nstr("3+", "3+", { default: null }),
    topics: arr("0+", {
      name: str("0-5", { default: "", ignorable: true }),
      topicId: uuid("6+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        committedOffset: int64("0+"),
        committedLeaderEpoch: int32("2+", { default: -1, ignorable: true }),
        committedMetadata: nstr("0+", "0+")
      })
    })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    topics: arr("0+", {
      name: str("0-5", { default: "", ignorable: true }),
      topicId: uuid("6+", { default: ZERO_UUID, ignorable: true }),
      partitions: arr("0+", { partitionIndex: int32("0+"), errorCode: int16("0+") })
    })
  }
})
