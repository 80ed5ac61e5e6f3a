/** What every mirror that is compared looks like to the suites. */
import type { KafkaCluster } from "../../test/kit/kafka.ts"
import type { Session } from "../session.ts"
import type { Shape } from "../shape.ts"

/** The header that the suite with a transform adds, on both sides: Connect's InsertHeader with a literal. */
export const TRANSFORM_HEADER = "origin"
export const TRANSFORM_VALUE = "bench"

export interface Job {
  readonly session: Session
  readonly source: KafkaCluster
  readonly target: KafkaCluster
  readonly shape: Shape
  readonly topics: ReadonlyArray<string>
  /** Of this run alone: the source's alias, and with it the prefix of the target topics. */
  readonly run: string
}

export interface Mirror {
  /** The root of the tree of processes that are counted. */
  readonly pid: number
  readonly running: () => boolean
  readonly output: () => string
  readonly stop: () => Promise<void>
}

export interface Peer {
  /** For tables: "onceover, consumer mode". */
  readonly name: string
  /** For names of topics and files. */
  readonly id: string
  readonly transform: boolean
  /** Whether a process of its own starts with the run; else there is no figure of the whole. */
  readonly fresh: boolean
  readonly start: (job: Job) => Promise<Mirror>
  /** Ends what outlives a run. */
  readonly end?: () => Promise<void>
}

export const targetTopic = (run: string, topic: string): string => `${run}.${topic}`

/** A pattern for exactly the topics of a shape: their names have no character that means something in one. */
export const topicPattern = (shape: Shape): string => `${shape.name}-[0-9]+`
