/**
 * DescribeAcls (KIP-140; v1: pattern types, KIP-290; v3: user resources, KIP-373).
 *
 * Starts at 1: version 0 knows no prefixed patterns.
 */
import { arr, defineApi, int16, int32, int8, nstr, str } from "../schema.ts"

export const describeAcls = defineApi({
  key: 29,
  name: "DescribeAcls",
  versions: "1-3",
  flexible: 2,
  request: {
    resourceTypeFilter: int8("0+"),
    resourceNameFilter: nstr("0+", "0+"),
    patternTypeFilter: int8("1+", { default: 3 }),
    principalFilter: nstr("0+", "0+"),
    hostFilter: nstr("0+", "0+"),
    operation: int8("0+"),
    permissionType: int8("0+")
  },
  response: {
    throttleTimeMs: int32("0+", { default: 0 }),
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+"),
    resources: arr("0+", {
      resourceType: int8("0+"),
      resourceName: str("0+"),
      patternType: int8("1+", { default: 3 }),
      acls: arr("0+", {
        principal: str("0+"),
        host: str("0+"),
        operation: int8("0+"),
        permissionType: int8("0+")
      })
    })
  }
})
