/**
 * What MirrorMaker 2 does where its file says nothing (4.3) and a flow of ours would not: written out as entries, so that
 * the same file gives the same. `../flowSettings.ts` has our defaults. What is better otherwise stays ours and is said at the
 * head of the file (yaml.ts): replication.factor is one, as 2 is nobody's wish on three brokers and fails on one.
 */
import type { Section } from "./draft.ts"

interface Default {
  readonly key: string
  readonly value: string
  /** Why it is written here. */
  readonly comment: string
}

/** What each of MirrorMaker's connectors does by itself. */
export type Part = "source" | "checkpoint" | "heartbeat"

const DEFAULTS: Readonly<Record<Part, ReadonlyArray<Default>>> = {
  source: [
    {
      key: "emit.offset-syncs.enabled",
      value: "true",
      comment: "MirrorMaker's default, for programs that read mm2-offset-syncs; nothing here does."
    },
    {
      key: "heartbeats.replication.enabled",
      value: "true",
      comment: "MirrorMaker's default: topics of heartbeats are mirrored whatever topics says."
    }
  ],
  checkpoint: [
    {
      key: "emit.checkpoints.enabled",
      value: "true",
      comment: "MirrorMaker's default, for RemoteClusterUtils; the offsets are exact."
    },
    {
      key: "sync.group.offsets.enabled",
      value: "false",
      comment:
        "MirrorMaker's default. true keeps groups that have no members on the target where they are on the source, to the record."
    }
  ],
  heartbeat: [{ key: "emit.heartbeats.enabled", value: "true", comment: "MirrorMaker's default, for MirrorClient." }]
}

export const setDefaults = (section: Section, parts: ReadonlyArray<Part>): void => {
  if (!parts.includes("checkpoint") && !section.has("sync.group.offsets.enabled")) {
    section.set("sync.group.offsets.enabled", "false", null, "MirrorMaker leaves it to MirrorCheckpointConnector.")
  }
  for (const { comment, key, value } of parts.flatMap((part) => DEFAULTS[part])) {
    if (!section.has(key)) section.set(key, value, null, comment)
  }
}

const LOCATION = "heartbeats.topic.location"

/**
 * MirrorMaker's driver writes heartbeats for both directions of a pair, also of one that is off: `back` says whether it
 * would for the other one, whose flow does not run. Mirrored as SOURCE.heartbeats those are what tells that a flow works.
 */
export const setHeartbeatsBack = (section: Section, back: boolean): void => {
  if (!back || section.has(LOCATION)) return
  const on = section.get("emit.heartbeats.enabled")?.value === "true"
  if (!on) {
    section.set(
      "emit.heartbeats.enabled",
      "true",
      null,
      "MirrorMaker writes them for the other direction, on the source."
    )
  }
  section.set(
    LOCATION,
    on ? "both" : "source",
    null,
    "As MirrorMaker, which writes the other direction's heartbeats although that is off; `target` needs no right to write on the source."
  )
}
