/**
 * From a delivery to what is to be produced: the "copy" step of a lane.
 *
 * A batch whose offsets are all ours, that needs no transform and that a producer may send as it is, goes as
 * bytes (not decoded, not recompressed); small ones that follow each other are put together (groups.ts). Any other is
 * decoded, reduced to the offsets that are ours, transformed, and encoded again with the same codec, timestamps and headers.
 *
 * Guarantee: every offset of the delivery's ranges is accounted for exactly once: in the `accept` or `gaps` of one
 * unit, or as a failure. Nothing here talks to a broker.
 */
import type { Copied, CopyFailure, CopyRules, CopyUnit } from "./copyUnit.ts"
import { decodedUnits } from "./decoding.ts"
import type { Delivery } from "./delivery.ts"
import { groupsOf, JOIN_BYTES } from "./groups.ts"
import { passedUnits } from "./passing.ts"

/**
 * Copies one delivery. Rejects with ProtocolError when a batch that must be decoded is corrupt: its bytes are not
 * what Kafka's format says, so nothing of it can be vouched for.
 */
export const copyDelivery = async (delivery: Delivery, rules: CopyRules): Promise<Copied> => {
  const { partition, topic, topicId } = delivery
  const source = { topic, topicId, partition }
  const units: Array<CopyUnit> = []
  const failures: Array<CopyFailure> = []
  for (const group of groupsOf(delivery, rules.chain !== null, rules.joinBytes ?? JOIN_BYTES)) {
    if (group.kind === "pass") {
      units.push(...passedUnits(group, rules.targetTopic, source))
      continue
    }
    const { stoppedAt, units: decoded } = await decodedUnits(group, delivery, rules, failures)
    units.push(...decoded)
    if (stoppedAt !== null) return { units, failures, stoppedAt }
  }
  return { units, failures, stoppedAt: null }
}
