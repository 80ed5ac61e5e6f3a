/**
 * The settings of a connection to one cluster, in Kafka's own names, and what they become. Values come as
 * strings, numbers or booleans, as YAML, JSON and properties files give them.
 *
 * Guarantees: a wrong value is a SettingsError that names the key, the value (never a secret one) and what is
 * allowed; names that are not known here are left alone (the configuration layer knows all names and warns).
 */
import { Effect, Schema } from "effect"

export type SettingValue = string | number | boolean
export type ClientSettings = Readonly<Record<string, SettingValue>>

/** A setting that cannot be used. `value` is "(hidden)" where the key is a secret. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  key: Schema.String,
  value: Schema.String,
  allowed: Schema.String
}) {
  override get message(): string {
    return `${this.key}: ${this.value === "" ? "empty" : this.value}; allowed: ${this.allowed}`
  }
}

const SECRET = /password|passphrase|secret|jaas\.config|keystore\.key$|key\.pem$|token(?!\.endpoint)|user\.info/

/** Whether the value of this setting must never be shown: passwords, keys, tokens, JAAS lines. */
export const isSecretSetting = (name: string): boolean => SECRET.test(name.toLowerCase())

/** The error for a value, hidden where it is secret and cut where it is long. */
export const wrongSetting = (key: string, value: SettingValue | undefined, allowed: string): SettingsError => {
  const shown = value === undefined ? "not set" : isSecretSetting(key) ? "(hidden)" : String(value)
  return new SettingsError({ key, value: shown.length > 200 ? `${shown.slice(0, 200)}...` : shown, allowed })
}

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Everything but security. Times in milliseconds. */
export interface ClientConfig {
  readonly bootstrap: ReadonlyArray<HostPort>
  readonly clientId: string
  readonly rack: string | null
  readonly requestTimeoutMs: number
  readonly apiTimeoutMs: number
  readonly connectTimeoutMs: number
  readonly connectTimeoutMaxMs: number
  readonly retryBackoffMs: number
  readonly retryBackoffMaxMs: number
  readonly reconnectBackoffMs: number
  readonly reconnectBackoffMaxMs: number
  readonly metadataMaxAgeMs: number
  readonly idleMs: number
  /** No answer is longer, bytes. */
  readonly maxAnswerBytes: number
  /** KIP-899: start again from bootstrap.servers when no known broker can be reached. */
  readonly rebootstrap: boolean
}

export const text = (settings: ClientSettings, key: string): string | undefined => {
  const value = settings[key]
  return value === undefined || value === null ? undefined : String(value).trim()
}

/** As it is: passwords may begin or end with a blank. */
export const secret = (settings: ClientSettings, key: string): string | undefined => {
  const value = settings[key]
  return value === undefined || value === null ? undefined : String(value)
}

/** Throws SettingsError; `parsing` makes it a typed failure. */
export const integer = (settings: ClientSettings, key: string, fallback: number, min: number, max: number): number => {
  const given = text(settings, key)
  if (given === undefined) return fallback
  const value = /^-?\d+$/.test(given) ? Number(given) : NaN
  if (!(value >= min && value <= max)) throw wrongSetting(key, settings[key], `a whole number from ${min} to ${max}`)
  return value
}

export const oneOf = <const T extends string>(
  settings: ClientSettings,
  key: string,
  fallback: T,
  allowed: ReadonlyArray<T>
): T => {
  const given = text(settings, key)
  if (given === undefined) return fallback
  const found = allowed.find((a) => a.toLowerCase() === given.toLowerCase())
  if (found === undefined) {
    throw wrongSetting(key, settings[key], allowed.map((a) => (a === "" ? "\"\"" : a)).join(", "))
  }
  return found
}

/** Runs a function that throws SettingsError only. Anything else it throws is a defect. */
export const parsing = <A>(parse: () => A): Effect.Effect<A, SettingsError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(parse())
    } catch (error) {
      return error instanceof SettingsError ? Effect.fail(error) : Effect.die(error)
    }
  })

const ADDRESS = /^(?:[A-Za-z][A-Za-z0-9_]*:\/\/)?(?:\[([0-9a-fA-F:.%]+)\]|([^\s:[\]/]+)):(\d+)$/

/** "host:port" or "[v6]:port", also with the listener prefix that librdkafka allows; null when it is neither. */
export const parseHostPort = (address: string): HostPort | null => {
  const found = ADDRESS.exec(address)
  if (found === null) return null
  const port = Number(found[3])
  return port < 1 || port > 65535 ? null : { host: (found[1] ?? found[2]) as string, port }
}

export const showHostPort = ({ host, port }: HostPort): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`

const bootstrapServers = (settings: ClientSettings): ReadonlyArray<HostPort> => {
  const key = "bootstrap.servers"
  const allowed = "host:port, several with commas between them"
  const parts = (text(settings, key) ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "")
  if (parts.length === 0) throw wrongSetting(key, settings[key], allowed)
  return parts.map((part) => {
    const address = parseHostPort(part)
    if (address === null) throw wrongSetting(key, part, `${allowed}; ports from 1 to 65535`)
    return address
  })
}

const MAX_INT = 2_147_483_647

/** Reads what a connection needs, but security (security.ts). */
export const parseClientConfig = (settings: ClientSettings): Effect.Effect<ClientConfig, SettingsError> =>
  parsing(() => {
    const ms = (key: string, fallback: number, min = 0) => integer(settings, key, fallback, min, MAX_INT)
    const retryBackoffMs = ms("retry.backoff.ms", 100)
    const reconnectBackoffMs = ms("reconnect.backoff.ms", 50)
    const connectTimeoutMs = ms("socket.connection.setup.timeout.ms", 10_000, 1)
    const rack = text(settings, "client.rack") ?? ""
    const idle = ms("connections.max.idle.ms", 540_000, -1)
    return {
      bootstrap: bootstrapServers(settings),
      clientId: text(settings, "client.id") || "onceover",
      rack: rack === "" ? null : rack,
      requestTimeoutMs: ms("request.timeout.ms", 30_000, 1),
      apiTimeoutMs: ms("default.api.timeout.ms", 60_000, 1),
      connectTimeoutMs,
      connectTimeoutMaxMs: Math.max(connectTimeoutMs, ms("socket.connection.setup.timeout.max.ms", 30_000, 1)),
      retryBackoffMs,
      retryBackoffMaxMs: Math.max(retryBackoffMs, ms("retry.backoff.max.ms", 1_000)),
      reconnectBackoffMs,
      reconnectBackoffMaxMs: Math.max(reconnectBackoffMs, ms("reconnect.backoff.max.ms", 1_000)),
      metadataMaxAgeMs: ms("metadata.max.age.ms", 300_000),
      idleMs: idle === -1 ? Infinity : idle,
      maxAnswerBytes: integer(settings, "receive.message.max.bytes", 268_435_456, 1_000, 1_073_741_824),
      rebootstrap:
        oneOf(settings, "metadata.recovery.strategy", "rebootstrap", ["rebootstrap", "none"]) === "rebootstrap"
    }
  })
