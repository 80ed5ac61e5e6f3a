/**
 * Who we are, from `sasl.*`: mechanism, user and password or token source, from sasl.jaas.config as Java users
 * have it or from librdkafka's single settings (which win, since they are plainer).
 */
import { readFileSync } from "node:fs"
import { type JaasEntry, parseJaas } from "./jaas.ts"
import { keptToken, tokenEndpoint, tokenFile, type TokenSource, unsecuredToken } from "./oauth.ts"
import type { SaslConfig } from "./sasl.ts"
import { type ClientSettings, integer, secret, text, wrongSetting } from "./settings.ts"

export const MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] as const
export type Mechanism = (typeof MECHANISMS)[number]

const MODULES: Readonly<Record<Mechanism, string>> = {
  "PLAIN": "PlainLoginModule",
  "SCRAM-SHA-256": "ScramLoginModule",
  "SCRAM-SHA-512": "ScramLoginModule",
  "OAUTHBEARER": "OAuthBearerLoginModule"
}

/** The mechanism; Kafka's own default, GSSAPI, is not spoken here, so it has to be said. Throws SettingsError. */
export const mechanismOf = (settings: ClientSettings): Mechanism => {
  const key = text(settings, "sasl.mechanism") === undefined && text(settings, "sasl.mechanisms") !== undefined
    ? "sasl.mechanisms"
    : "sasl.mechanism"
  const given = text(settings, key)?.toUpperCase()
  const found = MECHANISMS.find((mechanism) => mechanism === given)
  if (found === undefined) throw wrongSetting(key, settings[key], MECHANISMS.join(", "))
  return found
}

/** The JAAS entry, checked to be for the mechanism; null where there is none. Throws SettingsError. */
export const jaasOf = (settings: ClientSettings, mechanism: Mechanism): JaasEntry | null => {
  const line = secret(settings, "sasl.jaas.config")
  if (line === undefined || line.trim() === "") return null
  const entry = parseJaas(line)
  if (entry.module !== MODULES[mechanism]) {
    throw wrongSetting(
      "sasl.jaas.config",
      line,
      `${MODULES[mechanism]} for sasl.mechanism ${mechanism} (it names ${entry.module})`
    )
  }
  return entry
}

export interface Credentials {
  readonly username: string
  readonly password: string
}

/** User and password. Throws SettingsError. */
export const credentialsOf = (settings: ClientSettings, mechanism: Mechanism): Credentials => {
  const jaas = jaasOf(settings, mechanism)
  const username = secret(settings, "sasl.username") ?? jaas?.options["username"]
  const password = secret(settings, "sasl.password") ?? jaas?.options["password"]
  const where = `a value, or sasl.jaas.config with ${MODULES[mechanism]} required username="..." password="...";`
  if (username === undefined || username === "") throw wrongSetting("sasl.username", undefined, where)
  if (password === undefined) throw wrongSetting("sasl.password", undefined, where)
  if (username.includes("\0") || password.includes("\0")) {
    throw wrongSetting("sasl.username", username, "user and password without NUL characters")
  }
  // The library escapes the first comma only (RFC 5802 wants all).
  if (mechanism !== "PLAIN" && username.split(",").length > 2) {
    throw wrongSetting("sasl.username", username, "at most one comma")
  }
  return { username, password }
}

const CLAIM = /^unsecuredLogin(String|Number|List)Claim_(.+)$/

/** The claims of Kafka's unsecured login (OAuthBearerUnsecuredLoginCallbackHandler); null when it is not meant. */
export const unsecuredClaims = (
  jaas: JaasEntry | null
): { readonly claims: Readonly<Record<string, unknown>>; readonly lifetimeSeconds: number } | null => {
  const claims: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(jaas?.options ?? {})) {
    const found = CLAIM.exec(name)
    if (found === null) continue
    // A list's first character is its separator.
    claims[found[2] as string] = found[1] === "Number"
      ? Number(value)
      : found[1] === "List"
      ? value.slice(1).split(value.slice(0, 1))
      : value
  }
  if (Object.keys(claims).length === 0) return null
  return { claims, lifetimeSeconds: Number(jaas?.options["unsecuredLoginLifetimeSeconds"] ?? 3600) }
}

export interface Oidc {
  readonly url: URL
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string | null
}

const URL_KEY = "sasl.oauthbearer.token.endpoint.url"

const tokenUrl = (settings: ClientSettings): URL => {
  const given = text(settings, URL_KEY)
  const allowed = "an http:, https: or file: URL (or an unsecured login in sasl.jaas.config, for tests)"
  try {
    const url = new URL(given ?? "")
    if (["http:", "https:", "file:"].includes(url.protocol)) return url
  } catch {
    // Said below.
  }
  throw wrongSetting(URL_KEY, given, allowed)
}

/** The token endpoint and our client there. Throws SettingsError. */
export const oidcOf = (settings: ClientSettings, jaas: JaasEntry | null): Oidc => {
  const url = tokenUrl(settings)
  if (url.protocol === "file:") return { url, clientId: "", clientSecret: "", scope: null }
  const pick = (option: string, ...keys: ReadonlyArray<string>): string | undefined =>
    keys.map((key) => secret(settings, key)).find((value) => value !== undefined && value !== "") ??
      jaas?.options[option]
  const clientId = pick("clientId", "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
  const clientSecret = pick(
    "clientSecret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.secret"
  )
  if (clientId === undefined) {
    throw wrongSetting(
      "sasl.oauthbearer.client.id",
      undefined,
      "the client id at the token endpoint (or clientId in sasl.jaas.config)"
    )
  }
  if (clientSecret === undefined) {
    throw wrongSetting(
      "sasl.oauthbearer.client.secret",
      undefined,
      "the client's secret at the token endpoint (or clientSecret in sasl.jaas.config)"
    )
  }
  return { url, clientId, clientSecret, scope: pick("scope", "sasl.oauthbearer.scope") ?? null }
}

/** SASL extensions (KIP-342): `extension_name` in JAAS, or "a=b,c=d" in sasl.oauthbearer.extensions. */
export const extensionsOf = (settings: ClientSettings, jaas: JaasEntry | null): Readonly<Record<string, string>> => {
  const key = "sasl.oauthbearer.extensions"
  const given = (text(settings, key) ?? "").split(",").filter((pair) => pair !== "")
  if (given.some((pair) => !pair.includes("="))) {
    throw wrongSetting(key, settings[key], "name=value, several with commas between them")
  }
  const own = Object.entries(jaas?.options ?? {}).filter(([name]) => name.startsWith("extension_")).map((
    [name, value]
  ) => [name.slice("extension_".length), value] as const)
  return Object.fromEntries([
    ...own,
    ...given.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)] as const)
  ])
}

const authority = (settings: ClientSettings): string | null => {
  const key = "https.ca.location"
  const path = text(settings, key)
  if (path === undefined || path === "") return null
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    throw wrongSetting(
      key,
      path,
      `the path of a PEM file that can be read (${String((error as NodeJS.ErrnoException).code)})`
    )
  }
}

const tokenSource = (settings: ClientSettings, jaas: JaasEntry | null): TokenSource => {
  const unsecured = unsecuredClaims(jaas)
  if (unsecured !== null) return unsecuredToken(unsecured.claims, unsecured.lifetimeSeconds)
  const oidc = oidcOf(settings, jaas)
  if (oidc.url.protocol === "file:") return tokenFile(oidc.url)
  return tokenEndpoint({
    ...oidc,
    ca: authority(settings),
    timeoutMs: integer(settings, "sasl.login.connect.timeout.ms", 10_000, 1, 600_000)
  })
}

/** SASL for these settings. Throws SettingsError. */
export const parseSasl = (settings: ClientSettings): SaslConfig => {
  const mechanism = mechanismOf(settings)
  if (mechanism !== "OAUTHBEARER") return { mechanism, ...credentialsOf(settings, mechanism) }
  const jaas = jaasOf(settings, mechanism)
  return { mechanism, token: keptToken(tokenSource(settings, jaas)), extensions: extensionsOf(settings, jaas) }
}
