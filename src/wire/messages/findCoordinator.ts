/**
 * FindCoordinator (v4: several keys at once, KIP-699; v5: KIP-890; v6: share-partition keys, KIP-932).
 *
 * Gotchas: up to version 3 one `key` and an answer at the top level; from version 4 `coordinatorKeys` and
 * `coordinators`. Key types: 0 group (also share groups), 1 transactional id, 2 share partition.
 */
import { arr, defineApi, int16, int32, int8, nstr, str } from "../schema.ts"

export const findCoordinator = defineApi({
  key: 10,
  name: "FindCoordinator",
  versions: "0-6",
  flexible: 3,
  request: {
    key: str("0-3", { default: "" }),
    keyType: int8("1+", { default: 0 }),
    coordinatorKeys: arr("4+", str("4+"), { default: [] })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    errorCode: int16("0-3", { default: 0 }),
    errorMessage: nstr("1-3", "1-3", { default: "", ignorable: true }),
    nodeId: int32("0-3", { default: 0 }),
    host: str("0-3", { default: "" }),
    port: int32("0-3", { default: 0 }),
    coordinators: arr("4+", {
      key: str("4+"),
      nodeId: int32("4+"),
      host: str("4+"),
      port: int32("4+"),
      errorCode: int16("4+"),
      errorMessage: nstr("4+", "4+")
    }, { default: [] })
  }
})
