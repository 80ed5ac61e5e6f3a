/**
 * TLS from Kafka's `ssl.*` settings, and from librdkafka's where those say more (ssl.ca.location, ssl.ca.pem,
 * ssl.certificate.location, ssl.key.location).
 *
 * What a store is, is read from its bytes, not from its name: PEM, PKCS#12 or Java's own JKS. JKS and trust stores
 * in PKCS#12 are refused with the command that turns them into PEM. Everything is loaded and checked once, at the
 * start; a certificate that is renewed on disk is read at the next start.
 */
import { X509Certificate } from "node:crypto"
import { readFileSync } from "node:fs"
import {
  type ConnectionOptions,
  createSecureContext,
  getCACertificates,
  type SecureContextOptions,
  type SecureVersion
} from "node:tls"
import { type ClientSettings, oneOf, secret, text, wrongSetting } from "./settings.ts"

type Store = { readonly kind: "pem"; readonly text: string } | { readonly kind: "pkcs12"; readonly bytes: Buffer }

const JKS_MAGIC = 0xfeedfeed
const JCEKS_MAGIC = 0xcececece
const DER_SEQUENCE = 0x30

const readBytes = (settings: ClientSettings, key: string, path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (error) {
    throw wrongSetting(
      key,
      settings[key],
      `the path of a file that can be read (${String((error as NodeJS.ErrnoException).code)})`
    )
  }
}

const readStore = (settings: ClientSettings, key: string): Store | null => {
  const path = text(settings, key)
  if (path === undefined || path === "") return null
  const bytes = readBytes(settings, key, path)
  if (bytes.includes("-----BEGIN ")) return { kind: "pem", text: bytes.toString("utf8") }
  const magic = bytes.length >= 4 ? bytes.readUInt32BE(0) : 0
  if (magic === JKS_MAGIC || magic === JCEKS_MAGIC) {
    throw wrongSetting(
      key,
      path,
      "a PEM or PKCS#12 file; this is a Java key store (JKS), convert it with: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12, then openssl pkcs12 -in FILE.p12 -out FILE.pem"
    )
  }
  if (bytes[0] === DER_SEQUENCE) return { kind: "pkcs12", bytes }
  throw wrongSetting(key, path, "a PEM or PKCS#12 file")
}

const pemFile = (settings: ClientSettings, key: string, convert: string): string | null => {
  const store = readStore(settings, key)
  if (store === null) return null
  if (store.kind === "pem") return store.text
  throw wrongSetting(key, settings[key], `a PEM file; convert it with: ${convert}`)
}

const inlinePem = (settings: ClientSettings, key: string): string | null => {
  const pem = secret(settings, key)
  if (pem === undefined || pem.trim() === "") return null
  if (!pem.includes("-----BEGIN ")) throw wrongSetting(key, settings[key], "PEM text (-----BEGIN ...)")
  // In a properties file line breaks often come as the two characters \n.
  return pem.replaceAll("\\n", "\n")
}

/** The first of several settings that is there. */
const first = (...found: ReadonlyArray<() => string | null>): string | null => {
  for (const find of found) {
    const value = find()
    if (value !== null) return value
  }
  return null
}

const CERTIFICATE =
  /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[\s\S]*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g

/** Node leaves out a certificate that it cannot read, without a word: each is read here first. */
const checkedAuthorities = (settings: ClientSettings, key: string, pem: string | null): string | null => {
  if (pem === null) return null
  const blocks = pem.match(CERTIFICATE) ?? []
  if (blocks.length === 0) throw wrongSetting(key, settings[key], "certificates in PEM (there is none in it)")
  for (const [i, block] of blocks.entries()) {
    try {
      new X509Certificate(block)
    } catch {
      throw wrongSetting(key, settings[key], `certificates in PEM (number ${i + 1} of ${blocks.length} cannot be read)`)
    }
  }
  return pem
}

const trusted = (settings: ClientSettings): string | null => {
  const checked = (key: string, find: (key: string) => string | null) => () =>
    checkedAuthorities(settings, key, find(key))
  const fromDer = "openssl x509 -inform der -in FILE -out FILE.pem"
  return first(
    checked("ssl.ca.location", (key) => pemFile(settings, key, fromDer)),
    checked("ssl.ca.pem", (key) => inlinePem(settings, key)),
    checked("ssl.truststore.certificates", (key) => inlinePem(settings, key)),
    checked("ssl.truststore.location", (key) => pemFile(settings, key, "openssl pkcs12 -in FILE -nokeys -out FILE.pem"))
  )
}

const identity = (settings: ClientSettings): SecureContextOptions => {
  const store = readStore(settings, "ssl.keystore.location")
  if (store?.kind === "pkcs12") return { pfx: store.bytes, passphrase: secret(settings, "ssl.keystore.password") ?? "" }
  const cert = first(
    () => pemFile(settings, "ssl.certificate.location", "openssl x509 -inform der -in FILE -out FILE.pem"),
    () => inlinePem(settings, "ssl.certificate.pem"),
    () => inlinePem(settings, "ssl.keystore.certificate.chain"),
    () => store?.text ?? null
  )
  const key = first(
    () => pemFile(settings, "ssl.key.location", "openssl pkey -inform der -in FILE -out FILE.pem"),
    () => inlinePem(settings, "ssl.key.pem"),
    () => inlinePem(settings, "ssl.keystore.key"),
    () => store?.text ?? null
  )
  if (cert === null && key === null) return {}
  if (cert === null) {
    throw wrongSetting("ssl.certificate.location", undefined, "the certificate of the private key that is set")
  }
  if (key === null) throw wrongSetting("ssl.key.location", undefined, "the private key of the certificate that is set")
  const passphrase = secret(settings, "ssl.key.password")
  return { cert, key, ...(passphrase === undefined ? {} : { passphrase }) }
}

const VERSIONS: ReadonlyArray<SecureVersion> = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"]

const protocols = (settings: ClientSettings): SecureContextOptions => {
  const given = text(settings, "ssl.enabled.protocols")
  if (given === undefined || given === "") return {}
  const wanted = given.split(",").map((name) => VERSIONS.indexOf(name.trim() as SecureVersion))
  if (wanted.includes(-1)) {
    throw wrongSetting("ssl.enabled.protocols", given, `${VERSIONS.join(", ")}, several with commas between them`)
  }
  return {
    minVersion: VERSIONS[Math.min(...wanted)] as SecureVersion,
    maxVersion: VERSIONS[Math.max(...wanted)] as SecureVersion
  }
}

const ciphers = (settings: ClientSettings): SecureContextOptions => {
  const given = text(settings, "ssl.cipher.suites")
  return given === undefined || given === ""
    ? {}
    : { ciphers: given.split(/[,:]/).map((name) => name.trim()).join(":") }
}

/** Which setting is to blame when OpenSSL refuses what it was given. */
const blame = (settings: ClientSettings, error: NodeJS.ErrnoException) => {
  const words = `${error.code ?? ""} ${error.message}`.toLowerCase()
  if (words.includes("cipher")) {
    return wrongSetting("ssl.cipher.suites", settings["ssl.cipher.suites"], "names of cipher suites that OpenSSL knows")
  }
  if (words.includes("mac verify")) {
    return wrongSetting(
      "ssl.keystore.password",
      settings["ssl.keystore.password"],
      "the password of ssl.keystore.location"
    )
  }
  if (/decrypt|passphrase|password|interrupted or cancelled/.test(words)) {
    return wrongSetting("ssl.key.password", settings["ssl.key.password"], "the password of the private key")
  }
  if (words.includes("mismatch")) {
    return wrongSetting(
      "ssl.key.location",
      settings["ssl.key.location"] ?? "the private key",
      "the private key that belongs to the certificate"
    )
  }
  const source = [
    "ssl.ca.location",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain"
  ].find((key) => text(settings, key))
  return wrongSetting(
    source ?? "ssl.ca.location",
    source === undefined ? undefined : settings[source],
    `certificates and keys that OpenSSL can read (${error.code ?? error.message})`
  )
}

/** Node's TLS options for these settings. Throws SettingsError. */
export const parseTls = (settings: ClientSettings): ConnectionOptions => {
  const algorithm = oneOf(settings, "ssl.endpoint.identification.algorithm", "https", ["https", "none", ""])
  const verify = oneOf(settings, "enable.ssl.certificate.verification", "true", ["true", "false"]) === "true"
  const options: SecureContextOptions = {
    ca: trusted(settings) ?? [...getCACertificates("default"), ...getCACertificates("system")],
    ...identity(settings),
    ...protocols(settings),
    ...ciphers(settings)
  }
  try {
    const secureContext = createSecureContext(options)
    return {
      secureContext,
      rejectUnauthorized: verify,
      ...(algorithm === "https" ? {} : { checkServerIdentity: () => undefined })
    }
  } catch (error) {
    throw blame(settings, error as NodeJS.ErrnoException)
  }
}
