/**
 * DeleteTopics (v5: the reason in words; v6: by topic id, KIP-516).
 *
 * Up to version 5 `topicNames`, from 6 on `topics`. Starts at 1, as Kafka 4 does.
 */
import { arr, defineApi, int16, int32, nstr, str, uuid, ZERO_UUID } from "../schema.ts"

export const deleteTopics = defineApi({
  key: 20,
  name: "DeleteTopics",
  versions: "1-6",
  flexible: 4,
  request: {
    topics: arr("6+", { name: nstr("6+", "6+", { default: null }), topicId: uuid("6+") }, { default: [] }),
    topicNames: arr("0-5", str("0-5"), { default: [], ignorable: true }),
    timeoutMs: int32("0+")
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0 }),
    responses: arr("0+", {
      name: nstr("0+", "6+"),
      topicId: uuid("6+", { default: ZERO_UUID, ignorable: true }),
      errorCode: int16("0+"),
      errorMessage: nstr("5+", "5+", { default: null, ignorable: true })
    })
  }
})
