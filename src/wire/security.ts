import type { ConnectionOptions as TlsOptions } from "node:tls"
import type { SecurityProtocol } from "./connectionErrors.ts"
import type { SaslConfig } from "./sasl.ts"
import { Effect } from "effect"
import type { ClientSettings, SettingsError } from "./settings.ts"

export interface Security {
  readonly protocol: SecurityProtocol
  readonly tls: TlsOptions | null
  readonly sasl: SaslConfig | null
}
export const parseSecurity = (_settings: ClientSettings): Effect.Effect<Security, SettingsError> =>
  Effect.succeed({ protocol: "PLAINTEXT", tls: null, sasl: null })
