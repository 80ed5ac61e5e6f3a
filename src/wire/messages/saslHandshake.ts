/**
 * SaslHandshake (KIP-43). Version 1 means that tokens follow inside SaslAuthenticate, version 0 that they follow bare.
 *
 * Never flexible: its version cannot be raised (KAFKA-9577).
 */
import { arr, defineApi, int16, str } from "../schema.ts"

export const saslHandshake = defineApi({
  key: 17,
  name: "SaslHandshake",
  versions: "0-1",
  flexible: Infinity,
  request: { mechanism: str("0+") },
  response: { errorCode: int16("0+"), mechanisms: arr("0+", str("0+")) }
})
