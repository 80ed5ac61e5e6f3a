/** What a test asks for and what it gets: the same whether brokers are processes or containers. */
import { randomBytes } from "node:crypto"
import type { ListenerSpec } from "./brokerProperties.ts"

export interface ClusterOptions {
  /** For messages and folder names: "source", "target". */
  readonly name: string
  /** Kafka's version; its jars are fetched when they are not there. Default: the pinned one. */
  readonly version?: string
  readonly brokers?: 1 | 2 | 3
  /** Broker settings that win over the kit's. */
  readonly properties?: Readonly<Record<string, string>>
  /** Listeners beside the plain one, each on a port of its own; their security settings go into `properties`. */
  readonly listeners?: ReadonlyArray<ListenerSpec>
  /** Further options for the brokers' Java. */
  readonly jvm?: ReadonlyArray<string>
  /** The most to wait until it is up, milliseconds. Default 90 000. */
  readonly timeoutMs?: number
}

export interface KafkaCluster {
  readonly name: string
  readonly version: string
  readonly clusterId: string
  /** Of the plain listener, all brokers: "127.0.0.1:20001,127.0.0.1:20002". */
  readonly bootstrap: string
  /** Bootstrap string per listener name; PLAINTEXT is always there. */
  readonly listeners: Readonly<Record<string, string>>
  readonly brokerIds: ReadonlyArray<number>
  /** Where broker N has its log (broker-N.log) and data (data-N). */
  readonly logDir: string
  /** Signals one broker (by id) or all. SIGKILL and SIGTERM answer when the process has ended; SIGSTOP freezes it, SIGCONT thaws it. */
  readonly kill: (signal?: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT", brokerId?: number) => Promise<void>
  /** Starts the dead ones again (or the one with this id), on the same ports and data, and waits until all are alive. */
  readonly restart: (brokerId?: number) => Promise<void>
  /** The same without the wait. */
  readonly startDead: (brokerId?: number) => void
  /** Waits until every broker that runs says that `count` brokers (default: all) are alive. */
  readonly ready: (count?: number) => Promise<void>
  readonly logTail: (lines?: number) => string
  /** Kills all and removes the folder. Safe to repeat. */
  readonly stop: () => Promise<void>
}

/** 16 random bytes as Kafka writes them; one that starts with "-" would read as an option of its tools. */
export const uuid = (): string => {
  const text = randomBytes(16).toString("base64url")
  return text.startsWith("-") ? uuid() : text
}
