/**
 * Turns what a socket, the TLS layer or the SASL exchange says into one sentence for the person who has to fix it.
 *
 * Guarantees: no secret gets into a sentence (nothing of what was sent is quoted; of the broker's own words only
 * those of a refused authentication).
 */
import { ProtocolError } from "./bytes.ts"
import { ConnectionError } from "./errors.ts"

export type SecurityProtocol = "PLAINTEXT" | "SSL" | "SASL_PLAINTEXT" | "SASL_SSL"

/** connecting: until TCP, TLS and SASL are through; greeting: until the first answer beyond ApiVersions (which brokers give to anyone); serving: after that. */
export type Phase = "connecting" | "greeting" | "serving"

type Kind = ConnectionError["kind"]

const RESOLVE = new Set(["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA", "EAI_NONAME"])
const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there (connection refused)",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "the host does not answer",
  EACCES: "the operating system does not allow to connect there",
  EADDRNOTAVAIL: "the address cannot be used from here",
  EMFILE: "this process has no file descriptor left"
}
const TLS: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN:
    "the broker's certificate is signed by an authority that is not trusted here; set ssl.ca.location (or ssl.truststore.location) to the authority's PEM file",
  DEPTH_ZERO_SELF_SIGNED_CERT:
    "the broker's certificate is self-signed and not trusted here; set ssl.ca.location (or ssl.truststore.location) to it as a PEM file",
  UNABLE_TO_GET_ISSUER_CERT:
    "an issuer of the broker's certificate is not trusted here; set ssl.ca.location to the authority's PEM file",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the issuer of the broker's certificate is not trusted here; set ssl.ca.location to the authority's PEM file",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the broker's certificate cannot be verified; set ssl.ca.location to the authority's PEM file, and see that the broker sends its intermediate certificates",
  CERT_SIGNATURE_FAILURE:
    "the broker's certificate was not signed by the authority of that name in ssl.ca.location: the file holds another key",
  CERT_HAS_EXPIRED:
    "the broker's certificate (or its authority's) has expired; renew it, or check this machine's clock",
  CERT_NOT_YET_VALID: "the broker's certificate is not valid yet; check this machine's clock",
  CERT_REVOKED: "the broker's certificate is revoked",
  INVALID_PURPOSE: "the broker's certificate is not meant for servers",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "the broker and ssl.enabled.protocols have no TLS version in common"
}
const TLS_PLAIN =
  "the listener does not speak TLS; check the port, or set security.protocol to PLAINTEXT or SASL_PLAINTEXT"
const PLAIN_TLS = "the listener speaks TLS; set security.protocol to SSL or SASL_SSL"

interface Failed {
  readonly code?: unknown
  readonly message?: unknown
  readonly reason?: unknown
  readonly cause?: unknown
  readonly errors?: unknown
  readonly apiId?: unknown
  readonly serverErrorMessage?: unknown
}

/** The error and everything it was caused by, outermost first; bounded. */
const chain = (error: unknown): ReadonlyArray<Failed> => {
  const found: Array<Failed> = []
  const queue: Array<unknown> = [error]
  while (queue.length > 0 && found.length < 16) {
    const next = queue.shift()
    if (typeof next !== "object" || next === null) continue
    const failed = next as Failed
    found.push(failed)
    if (Array.isArray(failed.errors)) queue.push(...failed.errors.slice(0, 4))
    queue.push(failed.cause)
  }
  return found
}

const tlsSentence = (failed: Failed): string | null => {
  const code = String(failed.code ?? "")
  const message = String(failed.message ?? "")
  const known = TLS[code]
  if (known !== undefined) return known
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `the broker's certificate is for another host name (${
      String(failed.reason ?? "no matching name")
    }); connect by a name in it, or set ssl.endpoint.identification.algorithm to none`
  }
  if (
    message.includes("secure TLS connection was established") || code === "ERR_SSL_WRONG_VERSION_NUMBER" ||
    code === "ERR_SSL_PACKET_LENGTH_TOO_LONG" || code === "ERR_SSL_HTTP_REQUEST"
  ) {
    return `the TLS handshake failed: ${TLS_PLAIN}`
  }
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE/.test(code)) {
    return "the broker refused the TLS handshake: it may want a client certificate (ssl.keystore.location or ssl.certificate.location and ssl.key.location), or the ciphers have nothing in common"
  }
  if (/ALERT_(BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_UNKNOWN|CERTIFICATE_EXPIRED|UNSUPPORTED_CERTIFICATE)/.test(code)) {
    return "the broker does not accept our client certificate; check ssl.keystore.location (or ssl.certificate.location) and which authority the broker trusts"
  }
  if (/ALERT_PROTOCOL_VERSION/.test(code)) return TLS["ERR_SSL_UNSUPPORTED_PROTOCOL"] as string
  return code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_") || code === "EPROTO" ? `TLS failed (${code})` : null
}

/** The broker's own verdict, wherever in the chain it is; else the innermost of the library's. */
const authenticationSentence = (errors: ReadonlyArray<Failed>, mechanism: string): string | null => {
  if (errors.some((e) => e.apiId === "UNSUPPORTED_SASL_MECHANISM")) {
    return `the listener does not offer SASL ${mechanism}; check sasl.mechanism`
  }
  if (errors.some((e) => e.apiId === "ILLEGAL_SASL_STATE")) {
    return "the listener wants no SASL; check the port, or set security.protocol to PLAINTEXT or SSL"
  }
  const refused = errors.find((e) => e.apiId === "SASL_AUTHENTICATION_FAILED")
  // The library wraps every failure of the exchange, a lost connection too: that one is no verdict.
  const lost = errors.some((e) => e.code === "PLT_KFK_NETWORK" && e.message === "Connection closed")
  const own = lost ? undefined : errors.findLast((e) => e.code === "PLT_KFK_AUTHENTICATION")
  if (refused === undefined && own === undefined) return null
  const words = refused?.serverErrorMessage ?? own?.message
  const why = typeof words === "string" && words !== "" ? ` (${words})` : ""
  return `SASL ${mechanism} authentication failed${why}; check the user, the password or the token`
}

export interface Circumstances {
  readonly address: string
  readonly protocol: SecurityProtocol
  /** The SASL mechanism, or "". */
  readonly mechanism: string
  readonly phase: Phase
}

const closedHint = (at: Circumstances): string => {
  if (at.phase === "serving") return "the broker closed the connection"
  const settings = at.protocol === "PLAINTEXT"
    ? "TLS or SASL"
    : at.protocol === "SSL"
    ? "SASL, or a client certificate"
    : "TLS, or another SASL mechanism"
  return `the other side closed the connection before it answered; is it a Kafka broker, and does this listener want ${settings} (security.protocol is ${at.protocol})?`
}

const failure = (at: Circumstances, kind: Kind, what: string): ConnectionError =>
  new ConnectionError({ address: at.address, kind, outcome: at.phase === "connecting" ? "unsent" : "unknown", what })

/** The connection ended without an error of its own. */
export const closedConnection = (at: Circumstances): ConnectionError => failure(at, "closed", closedHint(at))

/** The listener answered our plain bytes with a TLS record. */
export const wantsTls = (at: Circumstances): ConnectionError => failure(at, "tls", PLAIN_TLS)

/** Any error of the library, the socket or TLS. */
export const describeFailure = (at: Circumstances, error: unknown): ConnectionError | ProtocolError => {
  const errors = chain(error)
  for (const e of errors) if (e instanceof ConnectionError || e instanceof ProtocolError) return e
  const authentication = authenticationSentence(errors, at.mechanism)
  if (authentication !== null) return failure(at, "authentication", authentication)
  if (errors.some((e) => e.message === "Broker requires TLS.")) return wantsTls(at)
  for (const e of errors) {
    const tls = tlsSentence(e)
    if (tls !== null) return failure(at, "tls", tls)
  }
  for (const e of errors) {
    const code = String(e.code ?? "")
    if (RESOLVE.has(code)) return failure(at, "resolve", `the host name cannot be resolved (${code})`)
    if (NETWORK[code] !== undefined) return failure(at, code === "ETIMEDOUT" ? "timeout" : "refused", NETWORK[code])
    if (code === "PLT_KFK_UNEXPECTED_CORRELATION_ID") {
      return new ProtocolError({ what: `${at.address} answered a request that was not asked (wrong correlation id)` })
    }
  }
  return closedConnection(at)
}
