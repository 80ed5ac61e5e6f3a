/** Every API that is offered. */
import type { TxnShareDraft } from "../model/state.ts"
import { makeApiVersionsHandler } from "./apiVersions.ts"
import { describeClusterHandler, describeConfigsHandler, incrementalAlterConfigsHandler } from "./configs.ts"
import { deleteGroupsHandler, describeGroupsHandler, listGroupsHandler } from "./groupAdmin.ts"
import { heartbeatHandler, joinGroupHandler, leaveGroupHandler, syncGroupHandler } from "./groupMembers.ts"
import { offsetCommitHandler, offsetFetchHandler, txnOffsetCommitHandler } from "./groupOffsets.ts"
import { listOffsetsHandler, offsetForLeaderEpochHandler } from "./listOffsets.ts"
import {
  createPartitionsHandler,
  createTopicsHandler,
  deleteRecordsHandler,
  deleteTopicsHandler
} from "./topicAdmin.ts"
import {
  describeProducersHandler,
  describeTransactionsHandler,
  listTransactionsHandler,
  writeTxnMarkersHandler
} from "./transactionAdmin.ts"
import { fetchHandler } from "./fetch.ts"
import { findCoordinatorHandler } from "./findCoordinator.ts"
import type { Handler } from "./handler.ts"
import { metadataHandler } from "./metadata.ts"
import { produceHandler } from "./produce.ts"
import { shareAcknowledgeHandler } from "./shareAcknowledge.ts"
import { shareFetchHandler } from "./shareFetch.ts"
import { shareGroupDescribeHandler, shareGroupHeartbeatHandler } from "./shareGroups.ts"
import {
  alterShareGroupOffsetsHandler,
  deleteShareGroupOffsetsHandler,
  describeShareGroupOffsetsHandler
} from "./shareOffsets.ts"
import { readShareGroupStateHandler } from "./shareState.ts"
import {
  addOffsetsToTxnHandler,
  addPartitionsToTxnHandler,
  endTxnHandler,
  initProducerIdHandler
} from "./transactions.ts"
import { txnShareAcknowledgeAHandler, txnShareAcknowledgeBHandler } from "./txnShareAcknowledge.ts"

const always: ReadonlyArray<Handler> = [
  addOffsetsToTxnHandler,
  addPartitionsToTxnHandler,
  alterShareGroupOffsetsHandler,
  createPartitionsHandler,
  createTopicsHandler,
  deleteGroupsHandler,
  deleteRecordsHandler,
  deleteShareGroupOffsetsHandler,
  deleteTopicsHandler,
  describeClusterHandler,
  describeConfigsHandler,
  describeGroupsHandler,
  describeProducersHandler,
  describeShareGroupOffsetsHandler,
  describeTransactionsHandler,
  endTxnHandler,
  fetchHandler,
  findCoordinatorHandler,
  heartbeatHandler,
  incrementalAlterConfigsHandler,
  initProducerIdHandler,
  joinGroupHandler,
  leaveGroupHandler,
  listGroupsHandler,
  listOffsetsHandler,
  listTransactionsHandler,
  metadataHandler,
  offsetCommitHandler,
  offsetFetchHandler,
  offsetForLeaderEpochHandler,
  produceHandler,
  readShareGroupStateHandler,
  shareAcknowledgeHandler,
  shareFetchHandler,
  shareGroupDescribeHandler,
  shareGroupHeartbeatHandler,
  syncGroupHandler,
  txnOffsetCommitHandler,
  writeTxnMarkersHandler
]

/** By API key. */
export const makeHandlers = (draft: TxnShareDraft): ReadonlyMap<number, Handler> => {
  const drafts = { off: [], A: [txnShareAcknowledgeAHandler], B: [txnShareAcknowledgeBHandler] }[draft]
  const offered: Array<Handler> = [...always, ...drafts]
  offered.push(makeApiVersionsHandler(() => offered))
  return new Map(offered.map((entry) => [entry.api.key, entry]))
}
