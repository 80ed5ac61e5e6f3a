/** FindCoordinator, of groups, transactional ids and share partitions. */
import { findCoordinator } from "../../wire/messages/findCoordinator.ts"
import { code } from "../model/codes.ts"
import { type ClusterState, coordinatorOf } from "../model/state.ts"
import { handler } from "./handler.ts"

const find = (state: ClusterState, keyType: number, key: string) => {
  const nowhere = { key, nodeId: -1, host: "", port: -1 }
  if (keyType > 2) {
    return {
      ...nowhere,
      errorCode: code.INVALID_REQUEST,
      errorMessage: "Only groups, transactional ids and share partitions have a coordinator here"
    }
  }
  if (keyType === 0 && key === "") {
    return { ...nowhere, errorCode: code.INVALID_GROUP_ID, errorMessage: "The group id is empty" }
  }
  const broker = state.brokers.get(coordinatorOf(state, keyType === 1 ? "transaction" : "group", key))
  if (broker === undefined) {
    return { ...nowhere, errorCode: code.COORDINATOR_NOT_AVAILABLE, errorMessage: "No broker runs" }
  }
  return { key, nodeId: broker.id, host: broker.host, port: broker.port, errorCode: code.NONE, errorMessage: null }
}

export const findCoordinatorHandler = handler(findCoordinator, ({ request, state, version }) => {
  const { keyType } = request
  if (version >= 4) return { coordinators: request.coordinatorKeys.map((key) => find(state, keyType, key)) }
  const { errorCode, errorMessage, host, nodeId, port } = find(state, keyType, request.key)
  return { errorCode, errorMessage: errorMessage ?? "NONE", nodeId, host, port }
})
