/** ShareAcknowledge: acknowledgements without a fetch, and the renewal of locks (KIP-1222). */
import { shareAcknowledge } from "../../wire/messages/shareAcknowledge.ts"
import { code } from "../model/codes.ts"
import { bumpSession, closeSession, sessionError, sessionOf } from "../model/shareSession.ts"
import { handler } from "./handler.ts"
import { endpointsOf } from "./leaders.ts"
import { applyAcks, byTopic, leaderHint, lockMsOf } from "./shareAcks.ts"

const failed = (errorCode: number, errorMessage: string | null = null) => ({
  errorCode,
  errorMessage,
  responses: [],
  nodeEndpoints: []
})

export const shareAcknowledgeHandler = handler(shareAcknowledge, ({ brokerId, nowMs, request, state, version }) => {
  const [groupId, memberId, epoch] = [request.groupId ?? "", request.memberId ?? "", request.shareSessionEpoch]
  if (groupId === "") return failed(code.INVALID_REQUEST, "There is no group id")
  if (memberId === "" || memberId.length > 36) return failed(code.INVALID_REQUEST, "The member id is not valid")
  const session = sessionOf(state, groupId, memberId, brokerId)
  if (epoch === 0) return failed(code.INVALID_SHARE_SESSION_EPOCH)
  if (session === undefined) return failed(code.SHARE_SESSION_NOT_FOUND)
  const error = epoch === -1 ? code.NONE : sessionError(session, epoch)
  if (error !== code.NONE) return failed(error)
  const renewing = version >= 2 && request.isRenewAck
  const acked = applyAcks(state, { groupId, memberId, brokerId, renewing, nowMs }, request.topics)
  if (epoch === -1) closeSession(state, session)
  else bumpSession(session)
  return {
    errorCode: code.NONE,
    acquisitionLockTimeoutMs: lockMsOf(state, groupId),
    responses: byTopic(
      acked.map(({ errorCode, errorMessage, leader, partition, topicId }) =>
        [topicId, { partitionIndex: partition, errorCode, errorMessage, currentLeader: leaderHint(leader) }] as const
      )
    ),
    nodeEndpoints: acked.some((a) => a.leader !== null) ? endpointsOf(state) : []
  }
})
