/**
 * Who a cluster takes us for, as far as the settings say: what rights are given to. Brokers can map principals to
 * other names (principal.builder.class, ssl.principal.mapping.rules), so this is for words and for caution.
 */
import { credentialsOf, mechanismOf } from "./saslSettings.ts"
import { securityProtocol } from "./security.ts"
import type { ClientSettings } from "./settings.ts"

/** "User:alice"; null where only the broker knows (a certificate's name, a token's subject), or the settings are wrong. */
export const principalOf = (settings: ClientSettings): string | null => {
  try {
    const protocol = securityProtocol(settings)
    if (protocol === "PLAINTEXT") return "User:ANONYMOUS"
    if (protocol === "SSL") return null
    const mechanism = mechanismOf(settings)
    return mechanism === "OAUTHBEARER" ? null : `User:${credentialsOf(settings, mechanism).username}`
  } catch {
    return null
  }
}

/** The same in a sentence. */
export const principalWords = (settings: ClientSettings): string => principalOf(settings) ?? "the principal"
