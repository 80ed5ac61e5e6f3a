/**
 * Asks a broker which brokers it knows: the test of whether a cluster is up. Hand-made bytes (Metadata v1, no
 * topics), so that the harness stands on nothing that is under test.
 */
import { connect } from "node:net"

const request = (): Buffer => {
  const clientId = Buffer.from("kit")
  const bytes = Buffer.alloc(4 + 2 + 2 + 4 + 2 + clientId.length + 4)
  let at = bytes.writeInt32BE(bytes.length - 4, 0)
  at = bytes.writeInt16BE(3, at)
  at = bytes.writeInt16BE(1, at)
  at = bytes.writeInt32BE(7, at)
  at = bytes.writeInt16BE(clientId.length, at)
  at += clientId.copy(bytes, at)
  bytes.writeInt32BE(0, at)
  return bytes
}

const brokerIds = (answer: Buffer): ReadonlyArray<number> => {
  const ids: Array<number> = []
  let at = 8
  const count = answer.readInt32BE(at)
  at += 4
  for (let i = 0; i < count; i++) {
    ids.push(answer.readInt32BE(at))
    at += 4
    at += 2 + answer.readInt16BE(at)
    at += 4
    at += 2 + Math.max(0, answer.readInt16BE(at))
  }
  return ids
}

/** The ids of the brokers that the one at 127.0.0.1:port says are alive; empty when it gives no answer in `timeoutMs`. */
export const aliveBrokers = (port: number, timeoutMs = 2_000): Promise<ReadonlyArray<number>> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    let answer = Buffer.alloc(0)
    const done = (ids: ReadonlyArray<number>) => {
      socket.destroy()
      resolve(ids)
    }
    socket.setTimeout(timeoutMs, () => done([]))
    socket.on("error", () => done([]))
    socket.on("close", () => done([]))
    socket.on("connect", () => socket.write(request()))
    socket.on("data", (chunk) => {
      answer = Buffer.concat([answer, chunk])
      if (answer.length >= 4 && answer.length >= 4 + answer.readInt32BE(0)) done(brokerIds(answer))
    })
  })
