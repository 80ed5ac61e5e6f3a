/**
 * Groups of a flow's source that are onceover's own: nobody goes on with them on the target, so their offsets are not
 * kept there, and no right is needed for them.
 *
 * A flow that has changed its mode has two: a group id is of one kind, so the other mode needs another. The ledger knows
 * those that it has worked with; of a flow without one, only the default id tells.
 */
import { defaultGroupId } from "../config/flow.ts"
import type { ResolvedConfig, ResolvedFlow } from "../config/types.ts"
import type { Notes } from "./control/controlLog.ts"
import { leaderGroupId } from "./control/leader.ts"
import { notedGroups } from "./ledger/knownGroups.ts"

/** `notes`: of this flow. Also the groups of the other flows that read the same source. */
export const ownGroups = (config: ResolvedConfig, flow: ResolvedFlow, notes: Notes): ReadonlySet<string> =>
  new Set([
    flow.groupId,
    defaultGroupId(flow.source, flow.target),
    leaderGroupId(flow.name),
    ...notedGroups(notes),
    ...config.flows.filter((other) => other.source === flow.source).map(({ groupId }) => groupId)
  ])
