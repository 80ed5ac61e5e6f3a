/** Heartbeat, of classic groups (v3: static members, KIP-345). */
import { defineApi, int16, int32, nstr, str } from "../schema.ts"

export const heartbeat = defineApi({
  key: 12,
  name: "Heartbeat",
  versions: "0-4",
  flexible: 4,
  request: {
    groupId: str("0+"),
    generationId: int32("0+"),
    memberId: str("0+"),
    groupInstanceId: nstr("3+", "3+", { default: null })
  },
  response: {
    throttleTimeMs: int32("1+", { default: 0, ignorable: true }),
    errorCode: int16("0+")
  }
})
