/**
 * The same settings in librdkafka's words, for the clients that are librdkafka: the member of a consumer group and
 * the auditors. Security first, for there the two differ: JAAS lines, PEM stores, an empty host name algorithm.
 *
 * Guarantees: total. What cannot be said in librdkafka's words, or is wrong, is left out; parseClientConfig and
 * parseSecurity have refused what is wrong before. Names that are not about the connection are left out too.
 */
import { readFileSync } from "node:fs"
import {
  credentialsOf,
  extensionsOf,
  jaasOf,
  type Mechanism,
  mechanismOf,
  oidcOf,
  unsecuredClaims
} from "./saslSettings.ts"
import { securityProtocol } from "./security.ts"
import { type ClientSettings, secret, SettingsError, type SettingValue, text } from "./settings.ts"

type Mapped = Record<string, SettingValue>

/** Kafka's name -> librdkafka's name and the range it takes there. */
const TIMES: Readonly<Record<string, readonly [name: string, min: number, max: number]>> = {
  "request.timeout.ms": ["socket.timeout.ms", 10, 300_000],
  "socket.connection.setup.timeout.ms": ["socket.connection.setup.timeout.ms", 1_000, 2_147_483_647],
  "retry.backoff.ms": ["retry.backoff.ms", 1, 300_000],
  "retry.backoff.max.ms": ["retry.backoff.max.ms", 1, 300_000],
  "reconnect.backoff.ms": ["reconnect.backoff.ms", 0, 3_600_000],
  "reconnect.backoff.max.ms": ["reconnect.backoff.max.ms", 0, 3_600_000],
  "metadata.max.age.ms": ["metadata.max.age.ms", 1, 86_400_000],
  "connections.max.idle.ms": ["connections.max.idle.ms", 0, 2_147_483_647],
  "receive.message.max.bytes": ["receive.message.max.bytes", 1_000, 2_147_483_647]
}
const SAME = ["bootstrap.servers", "client.id", "client.rack", "metadata.recovery.strategy"]
const TLS_SAME = [
  "ssl.ca.location",
  "ssl.certificate.location",
  "ssl.key.location",
  "ssl.key.password"
]
const OIDC_SAME = ["https.ca.location"]

/** null where the settings are wrong. */
const attempt = <A>(run: () => A): A | null => {
  try {
    return run()
  } catch (error) {
    if (error instanceof SettingsError) return null
    throw error
  }
}

const copy = (settings: ClientSettings, names: ReadonlyArray<string>, into: Mapped): void => {
  for (const name of names) {
    const value = secret(settings, name)
    if (value !== undefined && value.trim() !== "") into[name] = value
  }
}

const copyTimes = (settings: ClientSettings, into: Mapped): void => {
  for (const [key, [name, min, max]] of Object.entries(TIMES)) {
    const value = Number(text(settings, key) ?? NaN)
    // -1 (never, as Kafka writes it) is 0 in librdkafka where that means never.
    if (Number.isFinite(value)) into[name] = value < 0 ? min : Math.min(max, Math.max(min, value))
  }
}

const isPem = (path: string): boolean => {
  try {
    return readFileSync(path).includes("-----BEGIN ")
  } catch {
    return false
  }
}

const inline = (settings: ClientSettings, from: string, to: string, into: Mapped): void => {
  const pem = secret(settings, from)
  if (pem !== undefined && pem.trim() !== "" && into[to] === undefined) into[to] = pem.replaceAll("\\n", "\n")
}

const tls = (settings: ClientSettings, into: Mapped): void => {
  copy(settings, TLS_SAME, into)
  for (const name of ["ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem"]) inline(settings, name, name, into)
  inline(settings, "ssl.truststore.certificates", "ssl.ca.pem", into)
  inline(settings, "ssl.keystore.certificate.chain", "ssl.certificate.pem", into)
  inline(settings, "ssl.keystore.key", "ssl.key.pem", into)
  const trust = text(settings, "ssl.truststore.location")
  if (trust && into["ssl.ca.location"] === undefined && into["ssl.ca.pem"] === undefined) {
    into["ssl.ca.location"] = trust
  }
  const store = text(settings, "ssl.keystore.location")
  if (store && isPem(store)) {
    into["ssl.certificate.location"] ??= store
    into["ssl.key.location"] ??= store
  } else if (store) {
    into["ssl.keystore.location"] = store
    const password = secret(settings, "ssl.keystore.password")
    if (password !== undefined) into["ssl.keystore.password"] = password
  }
  const suites = text(settings, "ssl.cipher.suites")
  if (suites) into["ssl.cipher.suites"] = suites.split(/[,:]/).map((name) => name.trim()).join(":")
  const algorithm = text(settings, "ssl.endpoint.identification.algorithm")
  if (algorithm !== undefined) {
    into["ssl.endpoint.identification.algorithm"] = algorithm === ""
      ? "none"
      : algorithm.toLowerCase()
  }
  if (text(settings, "enable.ssl.certificate.verification")?.toLowerCase() === "false") {
    into["enable.ssl.certificate.verification"] = false
  }
}

const bearer = (settings: ClientSettings, into: Mapped): void => {
  const jaas = jaasOf(settings, "OAUTHBEARER")
  const extensions = Object.entries(extensionsOf(settings, jaas)).map(([name, value]) => `${name}=${value}`).join(",")
  const unsecured = unsecuredClaims(jaas)
  if (unsecured !== null) {
    into["enable.sasl.oauthbearer.unsecure.jwt"] = true
    const own = extensions.split(",").filter((pair) => pair !== "").map((pair) => ` extension_${pair}`).join("")
    into["sasl.oauthbearer.config"] = `principal=${
      String(unsecured.claims["sub"])
    } lifeSeconds=${unsecured.lifetimeSeconds}${own}`
    return
  }
  const { clientId, clientSecret, scope, url } = oidcOf(settings, jaas)
  into["sasl.oauthbearer.method"] = "oidc"
  into["sasl.oauthbearer.token.endpoint.url"] = url.href
  into["sasl.oauthbearer.client.id"] = clientId
  into["sasl.oauthbearer.client.secret"] = clientSecret
  if (scope !== null) into["sasl.oauthbearer.scope"] = scope
  if (extensions !== "") into["sasl.oauthbearer.extensions"] = extensions
  copy(settings, OIDC_SAME, into)
}

const sasl = (settings: ClientSettings, into: Mapped): void => {
  const mechanism = attempt((): Mechanism => mechanismOf(settings))
  if (mechanism === null) return
  into["sasl.mechanism"] = mechanism
  if (mechanism === "OAUTHBEARER") {
    attempt(() => bearer(settings, into))
    return
  }
  const credentials = attempt(() => credentialsOf(settings, mechanism))
  if (credentials === null) return
  into["sasl.username"] = credentials.username
  into["sasl.password"] = credentials.password
}

/** Kafka's settings of a connection as librdkafka takes them. */
export const toLibrdkafka = (settings: ClientSettings): Readonly<Record<string, SettingValue>> => {
  const into: Mapped = {}
  copy(settings, SAME, into)
  copyTimes(settings, into)
  const protocol = attempt(() => securityProtocol(settings))
  if (protocol === null) return into
  into["security.protocol"] = protocol.toLowerCase()
  if (protocol === "SSL" || protocol === "SASL_SSL") tls(settings, into)
  if (protocol === "SASL_PLAINTEXT" || protocol === "SASL_SSL") sasl(settings, into)
  return into
}
