/** Promises over librdkafka's callbacks (the node-rdkafka style API): what the loader and the auditor share. */
import RdKafka from "@confluentinc/kafka-javascript"

export const { KafkaConsumer, Producer } = RdKafka
export type Consumer = InstanceType<typeof KafkaConsumer>
export type Sender = InstanceType<typeof Producer>
export type Message = RdKafka.Message
export type Failure = RdKafka.LibrdKafkaError

/** Settings in Kafka's names: security and the like. */
export type ClientProperties = Readonly<Record<string, string | number | boolean>>

type Callback<A> = (error: Failure | null | undefined, value: A) => void

/** An Error with the client's words and code, from whatever it hands over. */
export const toError = (what: string, failure: unknown): Error => {
  const { code, message } = failure as { message?: string; code?: number }
  return new Error(`${what}: ${message ?? String(failure)}${code === undefined ? "" : ` (${code})`}`)
}

export const call = <A>(what: string, run: (callback: Callback<A>) => unknown): Promise<A> =>
  new Promise((resolve, reject) => {
    run((error, value) => error ? reject(toError(what, error)) : resolve(value))
  })

/** Never collected: the add-on frees a client without waiting for its threads, which may end the process. */
const kept: Array<Consumer | Sender> = []

export const connect = async (client: Consumer | Sender): Promise<void> => {
  kept.push(client)
  // An error event throws when nobody listens; what matters comes through the callbacks.
  const events: NodeJS.EventEmitter = client
  events.on("event.error", () => undefined)
  await call("connect", (callback) => client.connect({ timeout: 30_000 }, callback as never))
}

export const disconnect = (client: Consumer | Sender): Promise<unknown> =>
  new Promise((resolve) => client.disconnect(() => resolve(undefined)))
