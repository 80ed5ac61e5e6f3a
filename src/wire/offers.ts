/**
 * What a broker offers: API versions and finalized features, asked with ApiVersions on every new connection (a
 * broker may have been upgraded since the last one).
 *
 * Gotcha (KIP-511): a broker that does not know our ApiVersions version answers UNSUPPORTED_VERSION in the shape
 * of version 0; it is asked again with what it lists, or version 0 where it lists nothing.
 */
import { Effect } from "effect"
import type { ProtocolError } from "./bytes.ts"
import { guarded } from "./connection.ts"
import type { LinkPort } from "./brokerPool.ts"
import { BrokerError, UnsupportedError, type WireError } from "./errors.ts"
import { apiVersions } from "./messages/apiVersions.ts"
import type { ApiHead, ResponseOf, VersionRange } from "./schema.ts"

export interface Features {
  /** -1: the broker does not know (yet). */
  readonly epoch: number
  /** Name -> finalized maximum version level. */
  readonly levels: ReadonlyMap<string, number>
}

export interface Offers {
  readonly apis: ReadonlyMap<number, VersionRange>
  readonly features: Features
}

const SOFTWARE = { clientSoftwareName: "onceover", clientSoftwareVersion: "0.1.0" }
const UNSUPPORTED_VERSION = 35

const decode = (version: number, bytes: Buffer): Effect.Effect<ResponseOf<typeof apiVersions>, ProtocolError> =>
  guarded(() => {
    const refused = bytes.length >= 2 && bytes.readInt16BE(0) === UNSUPPORTED_VERSION
    return apiVersions.response.decode(refused ? 0 : version, bytes)
  })

const ask = (
  link: LinkPort,
  version: number,
  timeoutMs: number
): Effect.Effect<ResponseOf<typeof apiVersions>, WireError> =>
  guarded(() => apiVersions.request.encode(version, version >= 3 ? SOFTWARE : {})).pipe(
    Effect.flatMap((body) =>
      link.sendRaw({
        key: apiVersions.key,
        name: apiVersions.name,
        version,
        flexible: version >= apiVersions.flexibleFrom,
        body,
        timeoutMs
      })
    ),
    Effect.flatMap((bytes) => decode(version, bytes)),
    Effect.tapError((error) => Effect.sync(() => link.fail(error)))
  )

/** Asks a broker what it offers. */
export const askOffers = (link: LinkPort, timeoutMs: number): Effect.Effect<Offers, WireError> =>
  Effect.gen(function*() {
    const newest = apiVersions.versions.max
    let answer = yield* ask(link, newest, timeoutMs)
    if (answer.errorCode === UNSUPPORTED_VERSION) {
      const own = answer.apiKeys.find((offer) => offer.apiKey === apiVersions.key)
      answer = yield* ask(link, own === undefined ? 0 : Math.max(0, Math.min(newest - 1, own.maxVersion)), timeoutMs)
    }
    if (answer.errorCode !== 0) {
      return yield* new BrokerError({
        api: apiVersions.name,
        code: answer.errorCode,
        subject: link.address,
        detail: null
      })
    }
    return {
      apis: new Map(answer.apiKeys.map((offer) => [offer.apiKey, { min: offer.minVersion, max: offer.maxVersion }])),
      features: {
        epoch: answer.finalizedFeaturesEpoch,
        levels: new Map(answer.finalizedFeatures.map((feature) => [feature.name, feature.maxVersionLevel]))
      }
    }
  })

export interface VersionLimits {
  readonly minVersion?: number | undefined
  readonly maxVersion?: number | undefined
}

/** The highest version that both sides and the caller allow. */
export const negotiateVersion = (
  address: string,
  offers: Offers,
  api: ApiHead,
  limits: VersionLimits = {}
): Effect.Effect<number, UnsupportedError> => {
  const offer = offers.apis.get(api.key)
  if (offer === undefined) {
    return Effect.fail(
      new UnsupportedError({ api: api.name, what: `the broker ${address} does not offer ${api.name} (API ${api.key})` })
    )
  }
  const min = Math.max(api.versions.min, limits.minVersion ?? 0)
  const max = Math.min(api.versions.max, limits.maxVersion ?? Infinity)
  const version = Math.min(max, offer.max)
  if (version >= Math.max(min, offer.min)) return Effect.succeed(version)
  return Effect.fail(
    new UnsupportedError({
      api: api.name,
      what:
        `the broker ${address} offers ${api.name} in versions ${offer.min} to ${offer.max}, needed is ${min} to ${max}`
    })
  )
}
