import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ClientSettings, isSecretSetting, parseClientConfig, parseHostPort } from "../../src/wire/settings.ts"

const refused = (settings: ClientSettings) =>
  Effect.flip(parseClientConfig({ "bootstrap.servers": "a:1", ...settings }))

describe("client settings", () => {
  it.effect("come as strings, numbers or booleans alike", () =>
    Effect.gen(function*() {
      const strings = yield* parseClientConfig({
        "bootstrap.servers": "a:1",
        "request.timeout.ms": "5000",
        "retry.backoff.ms": " 7 "
      })
      const numbers = yield* parseClientConfig({
        "bootstrap.servers": "a:1",
        "request.timeout.ms": 5000,
        "retry.backoff.ms": 7
      })
      assert.deepStrictEqual(strings, numbers)
      assert.strictEqual(strings.requestTimeoutMs, 5000)
    }))

  it.effect("have the defaults of Kafka's clients", () =>
    Effect.gen(function*() {
      const config = yield* parseClientConfig({ "bootstrap.servers": "a:1" })
      assert.deepInclude(config, {
        requestTimeoutMs: 30_000,
        apiTimeoutMs: 60_000,
        connectTimeoutMs: 10_000,
        connectTimeoutMaxMs: 30_000,
        retryBackoffMs: 100,
        retryBackoffMaxMs: 1_000,
        reconnectBackoffMs: 50,
        reconnectBackoffMaxMs: 1_000,
        metadataMaxAgeMs: 300_000,
        idleMs: 540_000,
        rebootstrap: true,
        rack: null
      })
    }))

  it.effect("read several bootstrap addresses, IPv6 and listener prefixes among them", () =>
    Effect.gen(function*() {
      const config = yield* parseClientConfig({
        "bootstrap.servers": "b-1.example.com:9092, [::1]:9093 ,PLAINTEXT://10.0.0.1:9094,"
      })
      assert.deepStrictEqual(config.bootstrap, [
        { host: "b-1.example.com", port: 9092 },
        { host: "::1", port: 9093 },
        { host: "10.0.0.1", port: 9094 }
      ])
    }))

  it.effect("name key, value and what is allowed when a value is wrong", () =>
    Effect.gen(function*() {
      const wrong: ReadonlyArray<readonly [string, string | number | boolean]> = [
        ["request.timeout.ms", "soon"],
        ["request.timeout.ms", 0],
        ["request.timeout.ms", 1.5],
        ["retry.backoff.ms", -1],
        ["metadata.max.age.ms", true],
        ["connections.max.idle.ms", 99_999_999_999],
        ["socket.connection.setup.timeout.ms", ""],
        ["metadata.recovery.strategy", "hope"],
        ["receive.message.max.bytes", 10],
        ["bootstrap.servers", ""],
        ["bootstrap.servers", "localhost"],
        ["bootstrap.servers", "localhost:70000"],
        ["bootstrap.servers", "http://localhost/x:1"]
      ]
      for (const [key, value] of wrong) {
        const error = yield* refused({ [key]: value })
        assert.strictEqual(error._tag, "SettingsError")
        assert.strictEqual(error.key, key)
        assert.isAbove(error.allowed.length, 3)
        if (value !== "") assert.include(error.message, String(value).split(",")[0] as string)
      }
    }))

  it.effect("leave names alone that are not about a connection", () =>
    Effect.asVoid(parseClientConfig({ "bootstrap.servers": "a:1", "linger.ms": "x" })))

  it("are secret where they hold a password, key or token, under any prefix", () => {
    const secrets = [
      "sasl.jaas.config",
      "sasl.password",
      "ssl.key.password",
      "ssl.keystore.password",
      "ssl.truststore.password",
      "ssl.keystore.key",
      "ssl.key.pem",
      "sasl.oauthbearer.client.secret",
      "sasl.oauthbearer.client.credentials.client.secret",
      "consumer.override.sasl.jaas.config",
      "SASL.PASSWORD"
    ]
    for (const name of secrets) assert.isTrue(isSecretSetting(name), name)
    const open = [
      "bootstrap.servers",
      "sasl.username",
      "sasl.mechanism",
      "ssl.ca.location",
      "ssl.key.location",
      "ssl.keystore.location",
      "sasl.oauthbearer.token.endpoint.url",
      "ssl.keystore.certificate.chain"
    ]
    for (const name of open) assert.isFalse(isSecretSetting(name), name)
  })

  it("an address is a host and a port, nothing else", () => {
    for (const wrong of ["", "a", ":1", "a:", "a:0", "a:65536", "a:b", "::1:9092", "a b:1", "a:1:2"]) {
      assert.isNull(parseHostPort(wrong), wrong)
    }
  })
})
