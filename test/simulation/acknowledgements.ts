/** What lanes ask a share group to take as done, read from their requests. */
import type { Passing } from "../../src/embedded/faults.ts"
import { shareAcknowledge } from "../../src/wire/messages/shareAcknowledge.ts"
import { shareFetch } from "../../src/wire/messages/shareFetch.ts"
import type { Checker } from "./checker.ts"

const ACCEPT = 1

interface Asking {
  readonly topics: ReadonlyArray<{
    readonly topicId: string
    readonly partitions: ReadonlyArray<{
      readonly partitionIndex: number
      readonly acknowledgementBatches: ReadonlyArray<{
        readonly firstOffset: number
        readonly lastOffset: number
        /** One for all, or one for each. */
        readonly acknowledgeTypes: ReadonlyArray<number>
      }>
    }>
  }>
}

/** Has the checker look at each range that a request accepts. Throws its Violation. */
export const checkAccepted = (passing: Passing, checker: Checker): void => {
  if (passing.apiKey !== shareAcknowledge.key && passing.apiKey !== shareFetch.key) return
  for (const { partitions, topicId } of (passing.request as Asking).topics) {
    for (const { acknowledgementBatches, partitionIndex } of partitions) {
      for (const { acknowledgeTypes, firstOffset, lastOffset } of acknowledgementBatches) {
        for (let offset = firstOffset; offset <= lastOffset; offset++) {
          const type = acknowledgeTypes.length === 1 ? acknowledgeTypes[0] : acknowledgeTypes[offset - firstOffset]
          if (type === ACCEPT) checker.accepting(topicId, partitionIndex, offset)
        }
      }
    }
  }
}
