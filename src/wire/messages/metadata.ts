/**
 * Metadata (v9: flexible; v10 and 12: topic ids, KIP-516; v13: an error for the whole answer).
 *
 * Gotchas: in version 0 an empty list of topics means all of them; from version 1 null means all and an empty list
 * none. Asking by topic id with a null name works from version 12, although version 10 can spell it.
 */
import { arr, bool, defineApi, int16, int32, narr, nstr, str, uuid, ZERO_UUID } from "../schema.ts"

export const metadata = defineApi({
  key: 3,
  name: "Metadata",
  versions: "0-13",
  flexible: 9,
  request: {
    topics: narr("0+", "1+", {
      topicId: uuid("10+", { default: ZERO_UUID, ignorable: true }),
      name: nstr("0+", "10+")
    }),
    allowAutoTopicCreation: bool("4+", { default: true }),
    includeClusterAuthorizedOperations: bool("8-10", { default: false }),
    includeTopicAuthorizedOperations: bool("8+", { default: false })
  },
  response: {
    throttleTimeMs: int32("3+", { default: 0, ignorable: true }),
    brokers: arr("0+", {
      nodeId: int32("0+"),
      host: str("0+"),
      port: int32("0+"),
      rack: nstr("1+", "1+", { default: null, ignorable: true })
    }),
    clusterId: nstr("2+", "2+", { default: null, ignorable: true }),
    controllerId: int32("1+", { default: -1, ignorable: true }),
    topics: arr("0+", {
      errorCode: int16("0+"),
      name: nstr("0+", "12+"),
      topicId: uuid("10+", { default: ZERO_UUID, ignorable: true }),
      isInternal: bool("1+", { default: false, ignorable: true }),
      partitions: arr("0+", {
        errorCode: int16("0+"),
        partitionIndex: int32("0+"),
        leaderId: int32("0+"),
        leaderEpoch: int32("7+", { default: -1, ignorable: true }),
        replicaNodes: arr("0+", int32("0+")),
        isrNodes: arr("0+", int32("0+")),
        offlineReplicas: arr("5+", int32("5+"), { default: [], ignorable: true })
      }),
      topicAuthorizedOperations: int32("8+", { default: -2147483648 })
    }),
    clusterAuthorizedOperations: int32("8-10", { default: -2147483648 }),
    errorCode: int16("13+", { default: 0, ignorable: true })
  }
})
