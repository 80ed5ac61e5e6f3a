/**
 * SASL over @platformatic/kafka's mechanisms (PLAIN, SCRAM, OAUTHBEARER), with the checks they lack.
 *
 * Why not the mechanisms as they are: a malformed SCRAM challenge makes the library throw inside a socket
 * callback; an OAUTHBEARER refusal calls its callback twice; and re-authentication in place (KIP-368) is not
 * safe with requests under way, so the session's lifetime is taken from it here (see connection.ts).
 */
import {
  AuthenticationError,
  type CallbackWithPromise,
  saslOAuthBearer,
  type SASLOptions,
  saslPlain,
  saslScramSha
} from "@platformatic/kafka"

type SASLAuthenticationAPI = Parameters<typeof saslPlain.authenticate>[0]
type SaslAuthenticateResponse = NonNullable<Parameters<Parameters<NonNullable<SASLOptions["authenticate"]>>[6]>[1]>

export type SaslConfig =
  | {
    readonly mechanism: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512"
    readonly username: string
    readonly password: string
  }
  | {
    readonly mechanism: "OAUTHBEARER"
    readonly token: () => Promise<string>
    readonly extensions: Readonly<Record<string, string>>
  }

/** RFC 5802's first answer of the server; more iterations than this are an attack on our processor. */
const CHALLENGE = /^r=[^,]+,s=[A-Za-z0-9+/]+={0,2},i=(\d{1,7})(?:,|$)/
const FINAL = /^[ve]=/
const MAX_ITERATIONS = 1_000_000

const checkScram = (bytes: Buffer, step: number): string | null => {
  const words = bytes.toString("utf8")
  if (step > 0) return FINAL.test(words) ? null : "the broker's last SCRAM message is malformed"
  const found = CHALLENGE.exec(words)
  if (found === null) return "the broker's SCRAM challenge is malformed"
  return Number(found[1]) > MAX_ITERATIONS
    ? `the broker wants ${found[1]} SCRAM iterations (at most ${MAX_ITERATIONS})`
    : null
}

type Authenticated = (error: Error | null, response?: SaslAuthenticateResponse) => void

/** The same call, with the answers looked at before the mechanism sees them. */
const checked = (
  api: SASLAuthenticationAPI,
  check: (bytes: Buffer, step: number) => string | null
): SASLAuthenticationAPI => {
  let step = 0
  const call = (connection: Parameters<SASLAuthenticationAPI>[0], bytes: Buffer, done: Authenticated): void => {
    api(connection, bytes, (error: Error | null | undefined, response?: SaslAuthenticateResponse) => {
      const wrong = error || response === undefined ? null : check(response.authBytes ?? Buffer.alloc(0), step++)
      if (wrong !== null) return done(new AuthenticationError(wrong))
      done(error ?? null, response)
    })
  }
  return call as unknown as SASLAuthenticationAPI
}

/** The library's options for a configuration; `onSession` hears the session's lifetime where the broker limits it. */
export const saslOptions = (config: SaslConfig, onSession: (lifetimeMs: number) => void): SASLOptions => ({
  mechanism: config.mechanism,
  authenticate: (_mechanism, connection, api, _username, _password, _token, callback) => {
    let called = false
    const done: Authenticated = (error, response) => {
      if (called) return
      called = true
      if (error || response === undefined) return callback(error ?? new Error("no answer"), undefined as never)
      const lifetimeMs = Number(response.sessionLifetimeMs ?? 0)
      if (lifetimeMs > 0) onSession(lifetimeMs)
      callback(null, { ...response, sessionLifetimeMs: 0n })
    }
    const answer = done as unknown as CallbackWithPromise<SaslAuthenticateResponse>
    if (config.mechanism === "PLAIN") {
      return saslPlain.authenticate(api, connection, config.username, config.password, answer)
    }
    if (config.mechanism === "OAUTHBEARER") {
      const guardedApi = checked(api, (bytes) => (bytes.length > 0 ? "the broker does not accept the token" : null))
      return saslOAuthBearer.authenticate(guardedApi, connection, config.token, { ...config.extensions }, answer)
    }
    const algorithm = config.mechanism === "SCRAM-SHA-256" ? "SHA-256" : "SHA-512"
    saslScramSha.authenticate(
      checked(api, checkScram),
      connection,
      algorithm,
      config.username,
      config.password,
      saslScramSha.defaultCrypto,
      answer
    )
  }
})
