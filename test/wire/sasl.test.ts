import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { openLink } from "../../src/wire/connection.ts"
import { apiVersions } from "../../src/wire/messages/apiVersions.ts"
import { saslAuthenticate } from "../../src/wire/messages/saslAuthenticate.ts"
import { saslHandshake } from "../../src/wire/messages/saslHandshake.ts"
import type { SaslConfig } from "../../src/wire/sasl.ts"
import { answer, decodeRequest, fakeBroker, type FakeRequest, type Handler, offer } from "./support/fakeBroker.ts"

const SCRAM: SaslConfig = { mechanism: "SCRAM-SHA-256", username: "a=b,c", password: "hunter2" }
const BEARER: SaslConfig = {
  mechanism: "OAUTHBEARER",
  token: () => Promise.resolve("hunter2"),
  extensions: { pool: "7" }
}

const reply = (request: FakeRequest, authBytes: string, errorCode = 0) =>
  answer(request, saslAuthenticate, {
    errorCode,
    errorMessage: errorCode === 0 ? null : "no such user",
    authBytes: Buffer.from(authBytes),
    sessionLifetimeMs: 0
  })

/** Runs the handshake; `authenticate` answers each SaslAuthenticate. */
const saslServer = (authenticate: Handler): Handler => (request) => {
  if (request.key === apiVersions.key) return offer(request, [saslHandshake, saslAuthenticate])
  if (request.key === saslHandshake.key) {
    return answer(request, saslHandshake, { errorCode: 0, mechanisms: ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"] })
  }
  return authenticate(request)
}

const open = (sasl: SaslConfig, handler: Handler) =>
  Effect.flatMap(fakeBroker(handler), (broker) =>
    openLink({
      host: "127.0.0.1",
      port: broker.port,
      clientId: "test",
      connectTimeoutMs: 30_000,
      maxAnswerBytes: 100_000,
      security: { protocol: "SASL_PLAINTEXT", tls: null, sasl }
    }))

const failure = (sasl: SaslConfig, handler: Handler) =>
  Effect.scoped(Effect.gen(function*() {
    const error = yield* Effect.flip(open(sasl, handler))
    assert.strictEqual(error._tag, "ConnectionError")
    assert.notInclude(error.message, "hunter2")
    return error
  }))

const sent = (request: FakeRequest) => decodeRequest(request, saslAuthenticate).authBytes.toString("utf8")
const nonceOf = (request: FakeRequest) => /r=(.*)$/.exec(sent(request))?.[1] as string

describe("SASL", () => {
  it.live("a SCRAM challenge that is malformed, foreign or absurd ends the connection, not the process", () =>
    Effect.gen(function*() {
      const challenges: ReadonlyArray<(nonce: string) => string> = [
        () => "",
        () => "hello",
        (nonce) => `r=${nonce}1,i=4096`,
        (nonce) => `r=${nonce}1,s=c2FsdA==,i=many`,
        (nonce) => `r=${nonce}1,s=c2FsdA==,i=9999999`,
        (nonce) => `r=${nonce}1,s=c2FsdA==,i=1`,
        () => "r=somebody-elses-nonce,s=c2FsdA==,i=4096"
      ]
      for (const challenge of challenges) {
        const error = yield* failure(SCRAM, saslServer((request) => reply(request, challenge(nonceOf(request)))))
        assert.deepInclude(error, { kind: "authentication", outcome: "unsent" }, challenge("N"))
      }
    }))

  it.live("a listener that wants none says so: it is not the password that is wrong", () =>
    Effect.gen(function*() {
      const error = yield* failure(SCRAM, (request) =>
        request.key === saslHandshake.key
          ? answer(request, saslHandshake, { errorCode: 34, mechanisms: [] })
          : offer(request, [saslHandshake, saslAuthenticate]))
      assert.match(error.message, /the listener wants no SASL; .*set security\.protocol to PLAINTEXT or SSL/)
      assert.notMatch(error.message, /password/)
    }))

  it.live("a server that cannot prove that it knows the password is not believed", () =>
    Effect.gen(function*() {
      for (const last of ["v=AAAA", "", "e=other-error"]) {
        let step = 0
        const error = yield* failure(
          SCRAM,
          saslServer((request) => reply(request, step++ === 0 ? `r=${nonceOf(request)}1,s=c2FsdA==,i=4096` : last))
        )
        assert.strictEqual((error as { kind: string }).kind, "authentication")
      }
    }))

  it.live("an OAUTHBEARER refusal is one failure, whose words are not repeated", () =>
    Effect.gen(function*() {
      const error = yield* failure(
        BEARER,
        saslServer((request) => {
          assert.strictEqual(sent(request), "n,,\x01auth=Bearer hunter2\x01pool=7\x01\x01")
          return reply(request, `{"status":"invalid_token"}`)
        })
      )
      assert.include(error.message, "does not accept the token")
    }))

  it.live("the broker's own words of a refusal are told", () =>
    Effect.gen(function*() {
      const error = yield* failure(SCRAM, saslServer((request) => reply(request, "", 58)))
      assert.include(error.message, "no such user")
      assert.strictEqual((error as { kind: string }).kind, "authentication")
    }))

  it.live("a mechanism that the listener does not offer is named", () =>
    Effect.gen(function*() {
      const error = yield* failure(SCRAM, (request) => {
        if (request.key === saslHandshake.key) {
          return answer(request, saslHandshake, { errorCode: 33, mechanisms: ["PLAIN"] })
        }
        return offer(request, [saslHandshake, saslAuthenticate])
      })
      assert.match(error.message, /does not offer SASL SCRAM-SHA-256.*sasl\.mechanism/)
    }))

  it.live("a connection that is lost half-way is lost, not refused: it may be tried again", () =>
    Effect.gen(function*() {
      const error = yield* failure(
        SCRAM,
        saslServer((request) => {
          request.socket.destroy()
          return undefined
        })
      )
      assert.strictEqual((error as { kind: string }).kind, "closed")
    }))

  it.live("garbage instead of an answer is a failure as any other", () =>
    Effect.gen(function*() {
      for (const garbage of [Buffer.from("HTTP/1.1 400 Bad Request"), Buffer.alloc(64)]) {
        const error = yield* Effect.flip(Effect.scoped(open(SCRAM, () => garbage)))
        assert.strictEqual(error._tag, "ProtocolError")
      }
    }))
})
