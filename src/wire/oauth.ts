/**
 * Tokens for SASL/OAUTHBEARER: from an OAuth 2 token endpoint (client credentials), from a file, or unsecured ones
 * made here, as Kafka's unsecured login does for tests.
 *
 * Guarantees: a token is asked for once for all who wait, kept while it is fresh, and replaced when 80 % of its
 * life is over (Java's sasl.login.refresh.window.factor), so that no connection starts with one about to end. The
 * client's secret and the token never get into a message.
 */
import { readFile } from "node:fs/promises"
import { request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { ConnectionError } from "./errors.ts"

export interface Token {
  readonly text: string
  /** How long it may be kept, milliseconds. */
  readonly freshMs: number
}

export type TokenSource = () => Promise<Token>

const FRESH_SHARE = 0.8
const MAX_ANSWER_BYTES = 1_048_576
const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

/** An unsecured JWT ("alg":"none") with these claims. Only for brokers that accept anything: tests. */
export const unsecuredToken =
  (claims: Readonly<Record<string, unknown>>, lifetimeSeconds: number): TokenSource => async () => {
    // Wall clock: the broker compares these claims with its own.
    const now = new Date().getTime() / 1000
    const text = `${base64url({ alg: "none" })}.${base64url({ iat: now, exp: now + lifetimeSeconds, ...claims })}.`
    return { text, freshMs: lifetimeSeconds * 1000 * FRESH_SHARE }
  }

const failed = (address: string, kind: ConnectionError["kind"], what: string): ConnectionError =>
  new ConnectionError({
    address,
    kind,
    outcome: "unsent",
    what: `no token from sasl.oauthbearer.token.endpoint.url: ${what}`
  })

/** The life that the token itself states, if it is a JWT. */
const statedLifetimeMs = (token: string): number | null => {
  try {
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8")) as { exp?: unknown }
    return typeof claims.exp === "number" ? claims.exp * 1000 - new Date().getTime() : null
  } catch {
    return null
  }
}

/** A token that somebody else keeps fresh in a file (file: URL). It is read for every connection. */
export const tokenFile = (url: URL): TokenSource => async () => {
  try {
    return { text: (await readFile(url, "utf8")).trim(), freshMs: 0 }
  } catch (error) {
    throw failed(
      url.href,
      "authentication",
      `the file cannot be read (${String((error as NodeJS.ErrnoException).code)})`
    )
  }
}

export interface ClientCredentials {
  readonly url: URL
  readonly clientId: string
  readonly clientSecret: string
  readonly scope: string | null
  /** PEM of the authority of the endpoint's certificate; null: those of the system. */
  readonly ca: string | null
  readonly timeoutMs: number
}

interface HttpAnswer {
  readonly status: number
  readonly body: string
}

const post = (options: ClientCredentials, body: string): Promise<HttpAnswer> =>
  new Promise((resolve, reject) => {
    const send = options.url.protocol === "https:" ? httpsRequest : httpRequest
    const authorization = `Basic ${Buffer.from(`${options.clientId}:${options.clientSecret}`).toString("base64")}`
    const request = send(options.url, {
      method: "POST",
      signal: AbortSignal.timeout(options.timeoutMs),
      headers: {
        authorization,
        "accept": "application/json",
        "content-type": "application/x-www-form-urlencoded",
        "content-length": Buffer.byteLength(body)
      },
      ...(options.ca === null ? {} : { ca: options.ca })
    }, (response) => {
      const chunks: Array<Buffer> = []
      let size = 0
      response.on("data", (chunk: Buffer) => {
        size += chunk.length
        if (size > MAX_ANSWER_BYTES) response.destroy(new Error("its answer is too long"))
        else chunks.push(chunk)
      })
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") }))
      response.on("error", reject)
    })
    request.on("error", reject)
    request.end(body)
  })

const tokenIn = (address: string, answer: HttpAnswer): Token => {
  // 4xx is about who we are; anything else may pass.
  if (answer.status >= 400 && answer.status < 500) {
    throw failed(
      address,
      "authentication",
      `it answered ${answer.status}; check the client id, the secret and the scope`
    )
  }
  if (answer.status !== 200) throw failed(address, "refused", `it answered ${answer.status}`)
  let parsed: { access_token?: unknown; expires_in?: unknown } = {}
  try {
    parsed = JSON.parse(answer.body) as typeof parsed
  } catch {
    // Said below.
  }
  if (typeof parsed?.access_token !== "string" || parsed.access_token === "") {
    throw failed(address, "authentication", "its answer holds no access_token")
  }
  const lifeMs = statedLifetimeMs(parsed.access_token) ??
    (typeof parsed.expires_in === "number" ? parsed.expires_in * 1000 : 0)
  return { text: parsed.access_token, freshMs: lifeMs * FRESH_SHARE }
}

/** A token by the client-credentials grant (RFC 6749, 4.4). */
export const tokenEndpoint = (options: ClientCredentials): TokenSource => async () => {
  const form = new URLSearchParams({
    grant_type: "client_credentials",
    ...(options.scope === null ? {} : { scope: options.scope })
  })
  try {
    return tokenIn(options.url.host, await post(options, form.toString()))
  } catch (error) {
    if (error instanceof ConnectionError) throw error
    const { code, message, name } = error as NodeJS.ErrnoException
    throw failed(
      options.url.host,
      name === "AbortError" || name === "TimeoutError" ? "timeout" : "refused",
      code ?? message
    )
  }
}

/** Keeps the token of a source while it is fresh. */
export const keptToken = (source: TokenSource): () => Promise<string> => {
  let kept: { readonly text: string; readonly untilMs: number } | null = null
  let asking: Promise<string> | null = null
  const ask = async (): Promise<string> => {
    try {
      const token = await source()
      kept = { text: token.text, untilMs: performance.now() + token.freshMs }
      return token.text
    } finally {
      asking = null
    }
  }
  return () => kept !== null && performance.now() < kept.untilMs ? Promise.resolve(kept.text) : (asking ??= ask())
}
