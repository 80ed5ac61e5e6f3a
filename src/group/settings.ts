/**
 * The consumer settings that a group reads from `consumer.override.*`, in Kafka's names, with a mirror's defaults.
 * A wrong value is a SettingsError. What concerns the connection is read elsewhere (src/wire/settings.ts).
 */
import type { Effect } from "effect"
import {
  type ClientSettings,
  integer,
  oneOf,
  parsing,
  type SettingsError,
  text,
  wrongSetting
} from "../wire/settings.ts"

export interface GroupSettings {
  readonly readCommitted: boolean
  /** by_duration (KIP-1106) as milliseconds back from now. */
  readonly offsetReset: "earliest" | "latest" | "none" | { readonly backMs: number }
  readonly fetchMaxBytes: number
  readonly fetchMinBytes: number
  readonly fetchMaxWaitMs: number
  readonly partitionMaxBytes: number
  readonly maxPollIntervalMs: number
  readonly rack: string
}

const MAX_INT = 2_147_483_647
const DURATION = /^by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/

const offsetReset = (settings: ClientSettings): GroupSettings["offsetReset"] => {
  const key = "auto.offset.reset"
  const given = text(settings, key) ?? "earliest"
  const duration = DURATION.exec(given)
  if (duration !== null) {
    const [, days = 0, hours = 0, minutes = 0, seconds = 0] = duration.map((part) =>
      part === undefined ? 0 : Number(part)
    )
    return { backMs: (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 }
  }
  const known = (["earliest", "latest", "none"] as const).find((name) => name === given.toLowerCase())
  if (known === undefined) throw wrongSetting(key, settings[key], "earliest, latest, none, by_duration:PnDTnHnMnS")
  return known
}

export const parseGroupSettings = (settings: ClientSettings): Effect.Effect<GroupSettings, SettingsError> =>
  parsing(() => ({
    readCommitted:
      oneOf(settings, "isolation.level", "read_committed", ["read_committed", "read_uncommitted"]) === "read_committed",
    offsetReset: offsetReset(settings),
    fetchMaxBytes: integer(settings, "fetch.max.bytes", 16 * 1024 * 1024, 1, MAX_INT),
    fetchMinBytes: integer(settings, "fetch.min.bytes", 1, 0, MAX_INT),
    fetchMaxWaitMs: integer(settings, "fetch.max.wait.ms", 500, 0, MAX_INT),
    partitionMaxBytes: integer(settings, "max.partition.fetch.bytes", 4 * 1024 * 1024, 1, MAX_INT),
    maxPollIntervalMs: integer(settings, "max.poll.interval.ms", 300_000, 1_000, MAX_INT),
    rack: text(settings, "client.rack") ?? ""
  }))
