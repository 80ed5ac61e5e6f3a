/** DescribeCluster (KIP-700; v1: endpoint type, KIP-919; v2: fenced brokers, KIP-1073). */
import { arr, bool, defineApi, int16, int32, int8, nstr, str } from "../schema.ts"

export const describeCluster = defineApi({
  key: 60,
  name: "DescribeCluster",
  versions: "0-2",
  flexible: 0,
  request: {
    includeClusterAuthorizedOperations: bool("0+"),
    endpointType: int8("1+", { default: 1 }),
    includeFencedBrokers: bool("2+", { default: false })
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+", { default: null }),
    endpointType: int8("1+", { default: 1 }),
    clusterId: str("0+"),
    controllerId: int32("0+", { default: -1 }),
    brokers: arr("0+", {
      brokerId: int32("0+"),
      host: str("0+"),
      port: int32("0+"),
      rack: nstr("0+", "0+", { default: null }),
      isFenced: bool("2+", { default: false })
    }),
    clusterAuthorizedOperations: int32("0+", { default: -2147483648 })
  }
})
