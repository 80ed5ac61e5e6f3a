/** SaslAuthenticate (KIP-152; v1: session lifetime, KIP-368). */
import { bytes, defineApi, int16, int64, nstr } from "../schema.ts"

export const saslAuthenticate = defineApi({
  key: 36,
  name: "SaslAuthenticate",
  versions: "0-2",
  flexible: 2,
  request: { authBytes: bytes("0+") },
  response: {
    errorCode: int16("0+"),
    errorMessage: nstr("0+", "0+"),
    authBytes: bytes("0+"),
    sessionLifetimeMs: int64("1+", { default: 0, ignorable: true })
  }
})
