/**
 * How a connection is secured: `security.protocol`, and what TLS (tlsSettings.ts) and SASL (saslSettings.ts) need
 * for it. Settings of a part that the protocol does not use are not looked at, as in Kafka.
 */
import type { Effect } from "effect"
import type { ConnectionOptions as TlsOptions } from "node:tls"
import type { SecurityProtocol } from "./connectionErrors.ts"
import type { SaslConfig } from "./sasl.ts"
import { parseSasl } from "./saslSettings.ts"
import { type ClientSettings, oneOf, parsing, type SettingsError } from "./settings.ts"
import { parseTls } from "./tlsSettings.ts"

export interface Security {
  readonly protocol: SecurityProtocol
  readonly tls: TlsOptions | null
  readonly sasl: SaslConfig | null
}

const PROTOCOLS: ReadonlyArray<SecurityProtocol> = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]

/** The protocol alone. Throws SettingsError. */
export const securityProtocol = (settings: ClientSettings): SecurityProtocol =>
  oneOf(settings, "security.protocol", "PLAINTEXT", PROTOCOLS)

/** Reads and checks everything at once, files too. Fails with SettingsError, naming the key. */
export const parseSecurity = (settings: ClientSettings): Effect.Effect<Security, SettingsError> =>
  parsing(() => {
    const protocol = securityProtocol(settings)
    return {
      protocol,
      tls: protocol === "SSL" || protocol === "SASL_SSL" ? parseTls(settings) : null,
      sasl: protocol === "SASL_PLAINTEXT" || protocol === "SASL_SSL" ? parseSasl(settings) : null
    }
  })
