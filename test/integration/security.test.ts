import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { execFile } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { connect as tcpConnect, createServer as createTcpServer } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { makeCluster } from "../../src/wire/clusterClient.ts"
import { toLibrdkafka } from "../../src/wire/librdkafkaSettings.ts"
import { findCoordinator } from "../../src/wire/messages/findCoordinator.ts"
import type { ClientSettings } from "../../src/wire/settings.ts"
import { type Authority, type Certificate, makeAuthority, toEncryptedKey, toPkcs12 } from "../kit/certificates.ts"
import { type KafkaCluster, startCluster } from "../kit/kafka.ts"
import { makeWorkFolder, projectRoot, versions } from "../kit/paths.ts"
import { connect, disconnect, Producer } from "../kit/rdkafka.ts"
import { until } from "../kit/until.ts"

const PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
const SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
const OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
/** Everything that a quoting mistake would break. */
const PASSWORD = "se\"cr=et, \\o/;"
const quoted = (value: string): string => `"${value.replaceAll("\\", "\\\\").replaceAll("\"", "\\\"")}"`

let folder: string
let authority: Authority
let stranger: Authority
let client: Certificate
let kafka: KafkaCluster

const LISTENERS = [
  { name: "TLS", protocol: "SSL" },
  { name: "MUTUAL", protocol: "SSL" },
  { name: "EXPIRED", protocol: "SSL" },
  { name: "MISNAMED", protocol: "SSL" },
  { name: "SASLTLS", protocol: "SASL_SSL" },
  { name: "SASLPLAIN", protocol: "SASL_PLAINTEXT" },
  { name: "SHORT", protocol: "SASL_PLAINTEXT" }
] as const

const saslProperties = (listener: string): Record<string, string> => {
  const prefix = `listener.name.${listener}`
  return {
    [`${prefix}.sasl.enabled.mechanisms`]: "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    [`${prefix}.plain.sasl.jaas.config`]: `${PLAIN_MODULE} required user_alice=${quoted(PASSWORD)};`,
    [`${prefix}.scram-sha-256.sasl.jaas.config`]: `${SCRAM_MODULE} required;`,
    [`${prefix}.scram-sha-512.sasl.jaas.config`]: `${SCRAM_MODULE} required;`,
    [`${prefix}.oauthbearer.sasl.jaas.config`]: `${OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";`
  }
}

const keystore = (listener: string, certificate: Certificate): Record<string, string> => ({
  [`listener.name.${listener}.ssl.keystore.type`]: "PEM",
  [`listener.name.${listener}.ssl.keystore.location`]: certificate.file
})

const exec = promisify(execFile)

/** A user for SCRAM, with Kafka's own tool. It takes one mechanism at a time, and a password without its own signs. */
const addScramUser = async (user: string): Promise<void> => {
  const jars = (await exec(join(projectRoot, "scripts/kafka-jars.sh"), [versions.kafka])).stdout.trim()
  for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-512"]) {
    const config = `${mechanism}=[password=scram-secret]`
    const args = [
      "--bootstrap-server",
      kafka.bootstrap,
      "--alter",
      "--add-config",
      config,
      "--entity-type",
      "users",
      "--entity-name",
      user
    ]
    await exec("java", [
      "-XX:TieredStopAtLevel=1",
      "-cp",
      `${jars}/libs/*`,
      "org.apache.kafka.tools.ConfigCommand",
      ...args
    ])
  }
}

beforeAll(async () => {
  folder = makeWorkFolder("security")
  authority = makeAuthority(folder, "authority")
  stranger = makeAuthority(folder, "stranger")
  client = authority.issue({ name: "client" })
  const good = authority.issue({ name: "broker", subjectAltName: "DNS:localhost,IP:127.0.0.1" })
  kafka = await startCluster({
    name: "security",
    listeners: LISTENERS,
    properties: {
      ...keystore("tls", good),
      ...keystore("mutual", good),
      ...keystore("sasltls", good),
      ...keystore("expired", authority.issue({ name: "old", subjectAltName: "IP:127.0.0.1", expired: true })),
      ...keystore("misnamed", authority.issue({ name: "other", subjectAltName: "DNS:elsewhere.example" })),
      "listener.name.mutual.ssl.client.auth": "required",
      "listener.name.mutual.ssl.truststore.type": "PEM",
      "listener.name.mutual.ssl.truststore.location": authority.caFile,
      ...saslProperties("sasltls"),
      ...saslProperties("saslplain"),
      ...saslProperties("short"),
      "listener.name.short.connections.max.reauth.ms": "1500"
    }
  })
  await addScramUser("alice")
})

afterAll(async () => {
  await kafka?.stop()
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

const at = (listener: (typeof LISTENERS)[number]["name"] | "PLAINTEXT", settings: ClientSettings): ClientSettings => ({
  "bootstrap.servers": kafka.listeners[listener] as string,
  "request.timeout.ms": 20_000,
  ...settings
})

const clusterId = (settings: ClientSettings) =>
  Effect.scoped(Effect.flatMap(makeCluster("secure", settings), (cluster) => cluster.clusterId))

const works = (settings: ClientSettings) =>
  Effect.map(clusterId(settings), (id) => assert.strictEqual(id, kafka.clusterId))

/** The same settings, as librdkafka takes them. */
const worksInLibrdkafka = (settings: ClientSettings) =>
  Effect.promise(async () => {
    const producer = new Producer({ ...toLibrdkafka(settings) })
    await connect(producer)
    await disconnect(producer)
  })

const failsWith = (settings: ClientSettings, kind: "tls" | "authentication" | "closed", words: RegExp) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(clusterId(settings))
    assert.deepInclude(error, { _tag: "ConnectionError", kind })
    assert.match(error.message, words)
    for (const secret of [PASSWORD, "scram-secret", "mirror-secret", "wrong secret"]) {
      assert.notInclude(error.message, secret)
    }
  })

const trust = () => ({ "ssl.ca.location": authority.caFile })
const SASL = { "security.protocol": "SASL_PLAINTEXT" }
const SASL_TLS = () => ({ "security.protocol": "SASL_SSL", ...trust() })

describe("TLS", () => {
  it.live("works with the authority as a file or inline, by Kafka's names and librdkafka's", () =>
    Effect.forEach([
      trust(),
      { "ssl.truststore.type": "PEM", "ssl.truststore.location": authority.caFile },
      { "ssl.truststore.type": "PEM", "ssl.truststore.certificates": readFileSync(authority.caFile, "utf8") },
      { "ssl.ca.pem": readFileSync(authority.caFile, "utf8").replaceAll("\n", "\\n") },
      { ...trust(), "ssl.enabled.protocols": "TLSv1.2" },
      { ...trust(), "ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" }
    ], (own) => {
      const settings = at("TLS", { "security.protocol": "SSL", ...own })
      return Effect.andThen(works(settings), "ssl.cipher.suites" in own ? Effect.void : worksInLibrdkafka(settings))
    }))

  it.live("does not trust an authority that it was not told of", () =>
    Effect.andThen(
      failsWith(at("TLS", { "security.protocol": "SSL" }), "tls", /ssl\.ca\.location/),
      failsWith(
        at("TLS", { "security.protocol": "SSL", "ssl.ca.location": stranger.caFile }),
        "tls",
        /ssl\.ca\.location/
      )
    ))

  it.live("does not take a certificate that has expired", () =>
    failsWith(at("EXPIRED", { "security.protocol": "SSL", ...trust() }), "tls", /expired/))

  it.live("checks the host name, unless told not to", () =>
    Effect.gen(function*() {
      const settings = at("MISNAMED", { "security.protocol": "SSL", ...trust() })
      yield* failsWith(settings, "tls", /another host name.*ssl\.endpoint\.identification\.algorithm/)
      for (const algorithm of ["", "none"]) {
        yield* works({ ...settings, "ssl.endpoint.identification.algorithm": algorithm })
        yield* worksInLibrdkafka({ ...settings, "ssl.endpoint.identification.algorithm": algorithm })
      }
    }))

  it.live("shows a client certificate: PEM in one file or two, inline, encrypted, or PKCS#12", () =>
    Effect.forEach([
      { "ssl.keystore.type": "PEM", "ssl.keystore.location": client.file },
      { "ssl.certificate.location": client.certificateFile, "ssl.key.location": client.keyFile },
      {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": readFileSync(client.certificateFile, "utf8"),
        "ssl.keystore.key": readFileSync(client.keyFile, "utf8")
      },
      {
        "ssl.certificate.location": client.certificateFile,
        "ssl.key.location": toEncryptedKey(client, "pass"),
        "ssl.key.password": "pass"
      },
      {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": toPkcs12(client, "pass"),
        "ssl.keystore.password": "pass"
      }
    ], (own) => {
      const settings = at("MUTUAL", { "security.protocol": "SSL", ...trust(), ...own })
      return Effect.andThen(works(settings), worksInLibrdkafka(settings))
    }))

  it.live("says that a client certificate is wanted, or not accepted", () =>
    Effect.gen(function*() {
      const settings = at("MUTUAL", { "security.protocol": "SSL", ...trust() })
      yield* failsWith(settings, "tls", /client certificate/)
      yield* failsWith(
        { ...settings, "ssl.keystore.location": stranger.issue({ name: "client" }).file },
        "tls",
        /client certificate/
      )
    }))

  it.live("says so when plain text meets a TLS port, and TLS a plain one", () =>
    Effect.gen(function*() {
      const plain = yield* Effect.flip(clusterId(at("TLS", {})))
      assert.match(plain.message, /TLS.*security\.protocol|security\.protocol.*SSL/)
      yield* failsWith(at("PLAINTEXT", { "security.protocol": "SSL", ...trust() }), "tls", /does not speak TLS/)
    }))
})

describe("SASL", () => {
  const scram = (mechanism: string) => ({
    "sasl.mechanism": mechanism,
    "sasl.username": "alice",
    "sasl.password": "scram-secret"
  })

  it.live("PLAIN works, over TLS and without, from a JAAS line with every awkward sign and from single settings", () =>
    Effect.forEach([
      at("SASLTLS", {
        ...SASL_TLS(),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": `${PLAIN_MODULE} required username="alice" password=${quoted(PASSWORD)};`
      }),
      at("SASLPLAIN", { ...SASL, "sasl.mechanisms": "PLAIN", "sasl.username": "alice", "sasl.password": PASSWORD })
    ], (settings) => Effect.andThen(works(settings), worksInLibrdkafka(settings))))

  it.live("SCRAM works with both hashes", () =>
    Effect.forEach(["SCRAM-SHA-256", "SCRAM-SHA-512"], (mechanism) => {
      const jaas = `${SCRAM_MODULE} required username="alice" password="scram-secret";`
      return Effect.forEach([
        at("SASLPLAIN", { ...SASL, ...scram(mechanism) }),
        at("SASLTLS", { ...SASL_TLS(), "sasl.mechanism": mechanism, "sasl.jaas.config": jaas })
      ], (settings) => Effect.andThen(works(settings), worksInLibrdkafka(settings)))
    }))

  it.live("OAUTHBEARER works with Kafka's unsecured login", () => {
    const jaas = `${OAUTH_MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60";`
    const settings = at("SASLTLS", { ...SASL_TLS(), "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": jaas })
    return Effect.andThen(works(settings), worksInLibrdkafka(settings))
  })

  it.live("OAUTHBEARER gets its token from an endpoint, by the client's id and secret", () =>
    Effect.scoped(Effect.gen(function*() {
      const endpoint = yield* tokenServer
      const settings = at("SASLPLAIN", {
        ...SASL,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.id": "mirror",
        "sasl.oauthbearer.client.secret": "mirror-secret"
      })
      yield* works(settings)
      yield* worksInLibrdkafka(settings)
      yield* failsWith(
        { ...settings, "sasl.oauthbearer.client.secret": "wrong secret" },
        "authentication",
        /answered 401/
      )
    })))

  it.live("says which part is wrong: password, user, mechanism, token", () =>
    Effect.gen(function*() {
      const settings = at("SASLPLAIN", { ...SASL, ...scram("SCRAM-SHA-256") })
      yield* failsWith({ ...settings, "sasl.password": "wrong secret" }, "authentication", /SCRAM-SHA-256.*password/)
      yield* failsWith({ ...settings, "sasl.username": "nobody" }, "authentication", /user/)
      yield* failsWith({ ...settings, "sasl.mechanism": "PLAIN" }, "authentication", /PLAIN.*password/)
      const expired =
        `${OAUTH_MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_exp="1000";`
      yield* failsWith(
        at("SASLPLAIN", { ...SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": expired }),
        "authentication",
        /token/
      )
    }))

  it.live("says so when a listener wants SASL and we come without, or TLS is missing", () =>
    Effect.gen(function*() {
      yield* failsWith(at("SASLPLAIN", {}), "closed", /SASL.*security\.protocol/)
      const error = yield* Effect.flip(clusterId(at("SASLTLS", { ...SASL, ...scram("SCRAM-SHA-256") })))
      assert.match(error.message, /TLS/)
    }))

  it.live("sessions that the broker limits are renewed on new connections, and no request fails for it (KIP-368)", () =>
    Effect.scoped(Effect.gen(function*() {
      const proxy = yield* countingProxy(Number((kafka.listeners["SHORT"] as string).split(":")[1]))
      const settings = at("SHORT", {
        ...SASL,
        ...scram("SCRAM-SHA-512"),
        "bootstrap.servers": `127.0.0.1:${proxy.port}`
      })
      const cluster = yield* makeCluster("short", settings)
      // Metadata would lead past the proxy, to the broker's own port.
      const ask = cluster.request({ kind: "any" }, findCoordinator, { keyType: 0, coordinatorKeys: ["g"] }, {
        minVersion: 4
      })
      const failures: Array<string> = []
      const asked = Effect.match(ask, {
        onFailure: (error) => failures.push(error.message),
        onSuccess: () => failures.length
      })
      yield* Effect.promise(() =>
        until(async () => (await Effect.runPromise(asked)) > 0 || proxy.connections() >= 3, {
          what: "two further connections"
        })
      )
      assert.deepStrictEqual(failures, [])
    })))
})

/** Answers as an OAuth 2 token endpoint does, with tokens that the unsecured validator of the broker takes. */
const tokenServer: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() =>
      new Promise<Server>((resolve) => {
        const server = createServer((request, response) => {
          const basic = Buffer.from((request.headers.authorization ?? "").replace("Basic ", ""), "base64").toString(
            "utf8"
          )
          if (request.method !== "POST" || basic !== "mirror:mirror-secret") return response.writeHead(401).end()
          const now = Math.floor(new Date().getTime() / 1000)
          const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
          const token = `${part({ alg: "none" })}.${part({ sub: "mirror", iat: now, exp: now + 300 })}.`
          return response.writeHead(200, { "content-type": "application/json" }).end(
            JSON.stringify({ access_token: token, token_type: "Bearer", expires_in: 300 })
          )
        }).listen(0, "127.0.0.1", () => resolve(server))
      })
    ),
    (server) => Effect.sync(() => server.close())
  ),
  (server) => `http://127.0.0.1:${(server.address() as { port: number }).port}/token`
)

/** Passes bytes on and counts the connections. */
const countingProxy = (to: number) =>
  Effect.gen(function*() {
    let connections = 0
    const sockets = new Set<{ destroy: () => void }>()
    const server = createTcpServer((socket) => {
      connections++
      const other = tcpConnect(to, "127.0.0.1")
      for (const end of [socket, other]) {
        sockets.add(end)
        end.on("error", () => undefined)
      }
      socket.pipe(other).pipe(socket)
    })
    const port = yield* Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<number>((resolve) =>
          server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port))
        )
      ),
      () =>
        Effect.sync(() => {
          server.close()
          for (const socket of sockets) socket.destroy()
        })
    )
    return { port, connections: () => connections }
  })
