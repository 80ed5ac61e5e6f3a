/**
 * ReadShareGroupState (KIP-932): what the share coordinator has written down of a share partition. Brokers ask it of
 * each other; a client needs CLUSTER_ACTION on the cluster, where there are ACLs.
 *
 * Gotcha: sent to the coordinator of the share partition (FindCoordinator, key type 2, `group:topicId:partition`).
 * With the leader epoch that the state has (DescribeShareGroupOffsets tells it) it reads and changes nothing; a lower
 * one is refused, a higher one is written down and could fence the partition's leader.
 */
import { arr, defineApi, int16, int32, int64, int8, nstr, str, uuid } from "../schema.ts"

export const readShareGroupState = defineApi({
  key: 84,
  name: "ReadShareGroupState",
  versions: "0",
  flexible: 0,
  request: {
    groupId: str("0+"),
    topics: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", { partition: int32("0+"), leaderEpoch: int32("0+") })
    })
  },
  response: {
    results: arr("0+", {
      topicId: uuid("0+"),
      partitions: arr("0+", {
        partition: int32("0+"),
        errorCode: int16("0+"),
        errorMessage: nstr("0+", "0+", { default: null }),
        stateEpoch: int32("0+"),
        startOffset: int64("0+"),
        stateBatches: arr("0+", {
          firstOffset: int64("0+"),
          lastOffset: int64("0+"),
          deliveryState: int8("0+"),
          deliveryCount: int16("0+")
        })
      })
    })
  }
})
