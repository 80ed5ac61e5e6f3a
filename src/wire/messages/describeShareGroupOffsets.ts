/** DescribeShareGroupOffsets (KIP-932; version 1: lag, KIP-1226). */
import { arr, defineApi, int16, int32, int64, narr, nstr, str, uuid } from "../schema.ts"

export const describeShareGroupOffsets = defineApi({
  key: 90,
  name: "DescribeShareGroupOffsets",
  versions: "0-1",
  flexible: 0,
  request: {
    groups: arr("0+", {
      groupId: str("0+"),
      topics: narr("0+", "0+", { topicName: str("0+"), partitions: arr("0+", int32("0+")) })
    })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    groups: arr("0+", {
      groupId: str("0+"),
      topics: arr("0+", {
        topicName: str("0+"),
        topicId: uuid("0+"),
        partitions: arr("0+", {
          partitionIndex: int32("0+"),
          startOffset: int64("0+"),
          leaderEpoch: int32("0+"),
          lag: int64("1+", { default: -1, ignorable: true }),
          errorCode: int16("0+"),
          errorMessage: nstr("0+", "0+", { default: null })
        })
      }),
      errorCode: int16("0+"),
      errorMessage: nstr("0+", "0+", { default: null })
    })
  }
})
