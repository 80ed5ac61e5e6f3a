/** Where the brokers are, for answers that name a new leader (KIP-951). */
import { type ClusterState, runningBrokers } from "../model/state.ts"

export const endpointsOf = (state: ClusterState) =>
  runningBrokers(state).map(({ host, id, port, rack }) => ({ nodeId: id, host, port, rack }))
