/** ReadShareGroupState: what is written down of a share partition. All that is decided is. */
import { readShareGroupState } from "../../wire/messages/readShareGroupState.ts"
import { code } from "../model/codes.ts"
import { sharePartitionKey } from "../model/shareGroup.ts"
import { recordStates, type SharePartition } from "../model/sharePartition.ts"
import { coordinatorOf } from "../model/state.ts"
import { handler } from "./handler.ts"

const ACKNOWLEDGED = 2
const ARCHIVED = 4

const batchesOf = (shared: SharePartition) => {
  const from = shared.durableStart < 0 ? shared.start : shared.durableStart
  const passed = from < shared.start ? [{ first: from, last: shared.start - 1, deliveryState: ACKNOWLEDGED }] : []
  const decided = recordStates(shared).flatMap(({ offset, state }) => {
    if (state !== "acknowledged" && state !== "archived") return []
    return [{ first: offset, last: offset, deliveryState: state === "archived" ? ARCHIVED : ACKNOWLEDGED }]
  })
  return [...passed, ...decided].map(({ deliveryState, first, last }) => ({
    firstOffset: first,
    lastOffset: last,
    deliveryState,
    deliveryCount: 1
  }))
}

export const readShareGroupStateHandler = handler(readShareGroupState, ({ brokerId, request, state }) => ({
  results: request.topics.map(({ partitions, topicId }) => ({
    topicId,
    partitions: partitions.map(({ partition }) => {
      const shared = state.shareGroups.get(request.groupId)?.partitions.get(sharePartitionKey(topicId, partition))
      const nothing = { partition, stateEpoch: 0, startOffset: -1, stateBatches: [] }
      if (coordinatorOf(state, "group", `${request.groupId}:${topicId}:${partition}`) !== brokerId) {
        return { ...nothing, errorCode: code.NOT_COORDINATOR }
      }
      if (shared === undefined) return { ...nothing, errorCode: code.NONE }
      const startOffset = shared.durableStart < 0 ? shared.start : shared.durableStart
      return { ...nothing, errorCode: code.NONE, startOffset, stateBatches: batchesOf(shared) }
    })
  }))
}))
