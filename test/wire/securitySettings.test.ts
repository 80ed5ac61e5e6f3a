import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { toLibrdkafka } from "../../src/wire/librdkafkaSettings.ts"
import { parseSecurity } from "../../src/wire/security.ts"
import type { ClientSettings } from "../../src/wire/settings.ts"
import { type Authority, type Certificate, makeAuthority, toEncryptedKey, toPkcs12 } from "../kit/certificates.ts"

let folder: string
let authority: Authority
let one: Certificate
let other: Certificate

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "onceover-tls-"))
  authority = makeAuthority(folder, "authority")
  one = authority.issue({ name: "one" })
  other = authority.issue({ name: "other" })
})

afterAll(() => rmSync(folder, { recursive: true }))

const file = (name: string, content: string | Buffer): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

/** Each case: what is set beside the protocol, the key to blame, and words of what is allowed. */
type Case = readonly [settings: ClientSettings, key: string, allowed: RegExp]

const refuses = (base: ClientSettings, cases: ReadonlyArray<Case>) =>
  Effect.forEach(cases, ([settings, key, allowed]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(parseSecurity({ ...base, ...settings }))
      assert.strictEqual(error._tag, "SettingsError")
      assert.strictEqual(error.key, key, error.message)
      assert.match(error.allowed, allowed)
      assert.notInclude(error.message, "hunter2")
    }))

describe("security settings", () => {
  it.effect("name the protocol, in any case; what another protocol needs is not looked at", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* parseSecurity({})).protocol, "PLAINTEXT")
      const plain = yield* parseSecurity({
        "security.protocol": "plaintext",
        "sasl.mechanism": "nonsense",
        "ssl.ca.location": "/none"
      })
      assert.deepStrictEqual(plain, { protocol: "PLAINTEXT", tls: null, sasl: null })
      yield* refuses({}, [[
        { "security.protocol": "TLS" },
        "security.protocol",
        /PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL/
      ]])
    }))

  it.effect("of TLS say which key is wrong and how to put it right", () =>
    Effect.suspend(() =>
      refuses({ "security.protocol": "SSL" }, [
        [{ "ssl.ca.location": "/no/such/file" }, "ssl.ca.location", /ENOENT/],
        [{ "ssl.ca.location": file("words.pem", "no certificate") }, "ssl.ca.location", /PEM/],
        [
          { "ssl.ca.location": file("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") },
          "ssl.ca.location",
          /certificates/
        ],
        [
          { "ssl.truststore.location": file("trust.jks", Buffer.from("feedfeed00000002", "hex")) },
          "ssl.truststore.location",
          /keytool -importkeystore/
        ],
        [
          { "ssl.keystore.location": file("key.jks", Buffer.from("feedfeed00000002", "hex")) },
          "ssl.keystore.location",
          /keytool -importkeystore/
        ],
        [{ "ssl.truststore.location": toPkcs12(one, "hunter2") }, "ssl.truststore.location", /openssl pkcs12/],
        [{ "ssl.truststore.certificates": "no pem" }, "ssl.truststore.certificates", /BEGIN/],
        [
          { "ssl.keystore.location": toPkcs12(one, "hunter2"), "ssl.keystore.password": "hunter2 no" },
          "ssl.keystore.password",
          /password/
        ],
        [{ "ssl.certificate.location": one.certificateFile }, "ssl.key.location", /private key/],
        [{ "ssl.key.location": one.keyFile }, "ssl.certificate.location", /certificate/],
        [
          { "ssl.certificate.location": one.certificateFile, "ssl.key.location": other.keyFile },
          "ssl.key.location",
          /belongs to/
        ],
        [
          {
            "ssl.certificate.location": one.certificateFile,
            "ssl.key.location": toEncryptedKey(one, "hunter2"),
            "ssl.key.password": "hunter2 no"
          },
          "ssl.key.password",
          /password/
        ],
        [
          { "ssl.certificate.location": one.certificateFile, "ssl.key.location": toEncryptedKey(one, "hunter2") },
          "ssl.key.password",
          /password/
        ],
        [{ "ssl.enabled.protocols": "SSLv3" }, "ssl.enabled.protocols", /TLSv1\.3/],
        [{ "ssl.cipher.suites": "NO_SUCH_SUITE" }, "ssl.cipher.suites", /suites/],
        [{ "ssl.endpoint.identification.algorithm": "maybe" }, "ssl.endpoint.identification.algorithm", /https, none/]
      ])
    ))

  it.effect("of SASL say which key is wrong, and never show a password", () => {
    const jaas = (line: string) => ({ "sasl.mechanism": "PLAIN", "sasl.jaas.config": line })
    return refuses({ "security.protocol": "SASL_PLAINTEXT" }, [
      [{}, "sasl.mechanism", /PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER/],
      [{ "sasl.mechanism": "GSSAPI" }, "sasl.mechanism", /PLAIN/],
      [{ "sasl.mechanisms": "GSSAPI" }, "sasl.mechanisms", /PLAIN/],
      [{ "sasl.mechanism": "PLAIN" }, "sasl.username", /jaas/],
      [{ "sasl.mechanism": "PLAIN", "sasl.username": "a" }, "sasl.password", /jaas/],
      [jaas(`PlainLoginModule required username="a" password="hunter2"`), "sasl.jaas.config", /semicolon/],
      [
        jaas(`org.x.ScramLoginModule required username="a" password="hunter2";`),
        "sasl.jaas.config",
        /names ScramLoginModule/
      ],
      [{ "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "hunter2\0" }, "sasl.username", /NUL/],
      [
        { "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "a,b,c", "sasl.password": "hunter2" },
        "sasl.username",
        /comma/
      ],
      [{ "sasl.mechanism": "OAUTHBEARER" }, "sasl.oauthbearer.token.endpoint.url", /https/],
      [
        { "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "ftp://a" },
        "sasl.oauthbearer.token.endpoint.url",
        /https/
      ],
      [
        { "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://a/t" },
        "sasl.oauthbearer.client.id",
        /client id/
      ],
      [
        {
          "sasl.mechanism": "OAUTHBEARER",
          "sasl.oauthbearer.token.endpoint.url": "https://a/t",
          "sasl.oauthbearer.client.id": "c"
        },
        "sasl.oauthbearer.client.secret",
        /secret/
      ]
    ])
  })

  it.effect("keep a password as it is, blanks and all", () =>
    Effect.gen(function*() {
      const { sasl } = yield* parseSecurity({
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "plain",
        "sasl.username": "a",
        "sasl.password": " x "
      })
      assert.deepStrictEqual(sasl, { mechanism: "PLAIN", username: "a", password: " x " })
    }))
})

describe("settings for librdkafka", () => {
  it("carry the connection over, times within librdkafka's ranges, and nothing that is not about it", () => {
    const mapped = toLibrdkafka({
      "bootstrap.servers": "a:1,b:2",
      "client.id": "me",
      "request.timeout.ms": "900000",
      "connections.max.idle.ms": -1,
      "socket.connection.setup.timeout.ms": 5,
      "linger.ms": 5,
      "acks": "all"
    })
    assert.deepStrictEqual(mapped, {
      "bootstrap.servers": "a:1,b:2",
      "client.id": "me",
      "socket.timeout.ms": 300_000,
      "connections.max.idle.ms": 0,
      "socket.connection.setup.timeout.ms": 1_000,
      "security.protocol": "plaintext"
    })
  })

  it("turn a JAAS line into user and password", () => {
    const jaas = String
      .raw`org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b\"c";`
    assert.deepStrictEqual(
      toLibrdkafka({ "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas }),
      {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "a",
        "sasl.password": "b\"c"
      }
    )
  })

  it("turn Kafka's PEM and PKCS#12 stores into files and texts of its own", () => {
    const ssl = (settings: ClientSettings) => toLibrdkafka({ "security.protocol": "SSL", ...settings })
    assert.deepInclude(ssl({ "ssl.truststore.location": authority.caFile }), { "ssl.ca.location": authority.caFile })
    const pem = readFileSync(authority.caFile, "utf8")
    assert.deepInclude(ssl({ "ssl.truststore.certificates": pem.replaceAll("\n", "\\n") }), { "ssl.ca.pem": pem })
    assert.deepInclude(ssl({ "ssl.keystore.location": one.file }), {
      "ssl.certificate.location": one.file,
      "ssl.key.location": one.file
    })
    const store = toPkcs12(one, "p")
    assert.deepInclude(ssl({ "ssl.keystore.location": store, "ssl.keystore.password": "p" }), {
      "ssl.keystore.location": store,
      "ssl.keystore.password": "p"
    })
    assert.deepInclude(ssl({ "ssl.endpoint.identification.algorithm": "" }), {
      "ssl.endpoint.identification.algorithm": "none"
    })
    assert.notProperty(ssl({}), "ssl.endpoint.identification.algorithm", "its own default is https")
  })

  it("turn a token endpoint into its oidc method", () => {
    const jaas = `x.OAuthBearerLoginModule required clientId="c" clientSecret="s" scope="r" extension_pool="7";`
    assert.deepInclude(
      toLibrdkafka({
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas,
        "sasl.oauthbearer.token.endpoint.url": "https://a/t"
      }),
      {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "c",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "r",
        "sasl.oauthbearer.extensions": "pool=7",
        "sasl.oauthbearer.token.endpoint.url": "https://a/t"
      }
    )
  })

  it("leave out what is wrong instead of throwing", () => {
    assert.deepStrictEqual(toLibrdkafka({ "security.protocol": "x" }), {})
    assert.deepStrictEqual(
      toLibrdkafka({ "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "(" }),
      { "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN" }
    )
  })
})
