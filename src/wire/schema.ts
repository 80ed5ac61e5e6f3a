/**
 * Kafka's APIs as declarations. `defineApi` puts together the two messages of an API, the versions we speak and the
 * first flexible one; one declaration encodes and decodes in both directions, so that a server (src/embedded) speaks
 * with the same words. test/wire/conformance.test.ts holds every declaration against Kafka's own JSON
 * (kafka-clients.jar, common/message/*.json), field by field and version by version.
 *
 * Gotchas: `records` and `bytes` decode to slices of the answer, not copies. `encode` and `decode` throw, and throw
 * nothing but ProtocolError; the callers in this folder turn it into a typed failure.
 */
import { ByteReader, ByteWriter, ProtocolError } from "./bytes.ts"
import { type Read, structReader, structWriter, type Write } from "./codec.ts"
import { type Decoded, type Encoded, type Fields, inRange, parseVersions, type VersionRange } from "./fields.ts"

export * from "./fields.ts"

/** One direction of an API: name as Kafka's, the versions we speak, the first flexible version (Infinity: none). */
export interface Message<F> {
  readonly name: string
  readonly fields: F
  readonly versions: VersionRange
  readonly flexibleFrom: number
  /** Pieces to send in order: record bytes are among them as they were given, not copied. Throws ProtocolError. */
  readonly encode: (version: number, value: Encoded<F>) => ReadonlyArray<Buffer>
  /**
   * Throws ProtocolError on bytes that do not fit, or when bytes are left over. As a server one must let those pass:
   * librdkafka sends three bytes too many with its first Metadata request, and brokers do not mind.
   */
  readonly decode: (version: number, bytes: Buffer, leftOver?: "refuse" | "ignore") => Decoded<F>
}

/** The closures of a version, compiled when it is first used. */
const perVersion = <A>(name: string, range: VersionRange, compile: (version: number) => A): (version: number) => A => {
  const known = new Map<number, A>()
  return (version) => {
    const found = known.get(version)
    if (found !== undefined) return found
    if (!Number.isInteger(version) || !inRange(range, version)) {
      throw new ProtocolError({ what: `${name} has no version ${version} here (${range.min} to ${range.max})` })
    }
    const made = compile(version)
    known.set(version, made)
    return made
  }
}

/** Names the message in what goes wrong. A value of the wrong JavaScript type (no types at run time) ends here too. */
const failure = (name: string, version: number, cause: unknown, own = false): ProtocolError =>
  new ProtocolError({
    what: `${name} version ${version}: ${cause instanceof Error ? cause.message : String(cause)}`,
    own
  })

const message = <const F extends object>(
  name: string,
  versions: string,
  flexibleFrom: number,
  fields: F
): Message<F> => {
  const range = parseVersions(versions)
  const declared = fields as unknown as Fields
  const place = (version: number) => ({ path: "", version, flexible: version >= flexibleFrom })
  const reader = perVersion<Read>(name, range, (version) => structReader(declared, place(version)))
  const writer = perVersion<Write>(name, range, (version) => structWriter(declared, place(version)))
  return {
    name,
    fields,
    versions: range,
    flexibleFrom,
    encode: (version, value) => {
      const write = writer(version)
      const out = new ByteWriter()
      try {
        write(out, value)
      } catch (cause) {
        throw failure(name, version, cause, true)
      }
      return out.chunks()
    },
    decode: (version, buffer, leftOver = "refuse") => {
      const read = reader(version)
      const from = new ByteReader(buffer)
      let value: unknown
      try {
        value = read(from)
      } catch (cause) {
        throw failure(name, version, cause)
      }
      if (from.remaining > 0 && leftOver === "refuse") {
        throw failure(name, version, `${from.remaining} bytes are left over`)
      }
      return value as Decoded<F>
    }
  }
}

/** What is needed to choose a version. */
export interface ApiHead {
  readonly key: number
  readonly name: string
  readonly versions: VersionRange
}

/** A request and its answer. */
export interface Api<Req, Res> extends ApiHead {
  readonly request: Message<Req>
  readonly response: Message<Res>
  readonly flexibleFrom: number
}

/** Declares an API: `versions` are those we speak ("1-2"), `flexible` the first flexible one as Kafka says. */
export const defineApi = <const Req extends object, const Res extends object>(definition: {
  readonly key: number
  readonly name: string
  readonly versions: string
  readonly flexible: number
  readonly request: Req
  readonly response: Res
}): Api<Req, Res> => ({
  key: definition.key,
  name: definition.name,
  request: message(`${definition.name}Request`, definition.versions, definition.flexible, definition.request),
  response: message(`${definition.name}Response`, definition.versions, definition.flexible, definition.response),
  versions: parseVersions(definition.versions),
  flexibleFrom: definition.flexible
})

const API_VERSIONS = 18

/** Version of the request header: 2 has tagged fields, 1 has none (KIP-482). Version 0 is gone with its one API. */
export const requestHeaderVersion = (api: { readonly flexibleFrom: number }, version: number): 1 | 2 =>
  version >= api.flexibleFrom ? 2 : 1
/** Version of the response header: 1 has tagged fields, 0 has none. ApiVersions always answers with 0 (KIP-511). */
export const responseHeaderVersion = (
  api: { readonly key: number; readonly flexibleFrom: number },
  version: number
): 0 | 1 => version >= api.flexibleFrom && api.key !== API_VERSIONS ? 1 : 0

export type RequestOf<A> = A extends Api<infer Req, infer _Res> ? Encoded<Req> : never
export type ResponseOf<A> = A extends Api<infer _Req, infer Res> ? Decoded<Res> : never
