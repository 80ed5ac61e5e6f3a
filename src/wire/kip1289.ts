/**
 * KIP-1289, transactional acknowledgements for share groups: everything that its two drafts fix in numbers, in this
 * one place. No released broker has it; when one does, this file is what changes.
 *
 * A broker has it where share.version is at least `SHARE_VERSION` and one of the two API keys is listed. A key without
 * the feature is some other API.
 */
import { arr, defineApi, int16, int32, int64, int8, nstr, str, uuid } from "./schema.ts"

/** The finalized feature, and the level from which a broker acknowledges in transactions. */
export const SHARE_FEATURE = "share.version"
export const SHARE_VERSION = 3

/** What may be in a transaction: accept, reject, and gaps. A release may not. */
export const TRANSACTIONAL_ACKNOWLEDGE_TYPES: ReadonlySet<number> = new Set([0, 1, 3])

const NAME = "TxnShareAcknowledge"
const head = {
  transactionalId: nstr("0+", "0+"),
  groupId: str("0+"),
  producerId: int64("0+"),
  producerEpoch: int16("0+"),
  memberId: str("0+"),
  memberEpoch: int32("0+")
}
const range = { firstOffset: int64("0+"), lastOffset: int64("0+") }

/** Draft A: one type for each range. */
export const txnShareAcknowledgeA = defineApi({
  key: 93,
  name: NAME,
  versions: "0",
  flexible: 0,
  request: {
    ...head,
    topics: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        acknowledgementBatches: arr("0+", { ...range, acknowledgeType: int8("0+") })
      })
    })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    topics: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", { partitionIndex: int32("0+"), errorCode: int16("0+") })
    })
  }
})

/** Draft B, the newer one: a list of types (one stands for the whole range), and errors in words. */
export const txnShareAcknowledgeB = defineApi({
  key: 95,
  name: NAME,
  versions: "0",
  flexible: 0,
  request: {
    ...head,
    topics: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        acknowledgementBatches: arr("0+", { ...range, acknowledgeTypes: arr("0+", int8("0+")) })
      })
    })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    responses: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partitionIndex: int32("0+"),
        errorCode: int16("0+"),
        errorMessage: nstr("0+", "0+", { default: null })
      })
    })
  }
})
