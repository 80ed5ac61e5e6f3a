/**
 * Certificates for tests, made with openssl at test time: an authority, and keys signed by it (or by nobody).
 * Each key comes as one PEM file, key before certificate, as Kafka and we both read it.
 */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface CertificateOptions {
  /** File name and common name. */
  readonly name: string
  /** "DNS:localhost,IP:127.0.0.1" */
  readonly subjectAltName?: string
  /** Ended before it began to be used. */
  readonly expired?: boolean
}

export interface Certificate {
  /** Key and certificate. */
  readonly file: string
  readonly keyFile: string
  readonly certificateFile: string
}

export interface Authority {
  readonly caFile: string
  readonly issue: (options: CertificateOptions) => Certificate
}

const openssl = (...args: ReadonlyArray<string>): void => {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] })
}

/** A new authority whose files lie in `folder`. */
export const makeAuthority = (folder: string, name: string): Authority => {
  const caKey = join(folder, `${name}.key`)
  const caFile = join(folder, `${name}.pem`)
  openssl(
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    "-subj",
    `/CN=${name}`,
    "-keyout",
    caKey,
    "-out",
    caFile
  )
  const issue = ({ expired = false, name: own, subjectAltName }: CertificateOptions): Certificate => {
    const at = (ending: string) => join(folder, `${name}-${own}.${ending}`)
    const extensions = subjectAltName === undefined ? [] : ["-addext", `subjectAltName=${subjectAltName}`]
    openssl(
      "req",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      `/CN=${own}`,
      ...extensions,
      "-keyout",
      at("key"),
      "-out",
      at("csr")
    )
    const days = expired ? "-1" : "2"
    openssl(
      "x509",
      "-req",
      "-in",
      at("csr"),
      "-CA",
      caFile,
      "-CAkey",
      caKey,
      "-CAcreateserial",
      "-copy_extensions",
      "copyall",
      "-days",
      days,
      "-out",
      at("crt")
    )
    writeFileSync(at("pem"), readFileSync(at("key"), "utf8") + readFileSync(at("crt"), "utf8"))
    return { file: at("pem"), keyFile: at("key"), certificateFile: at("crt") }
  }
  return { caFile, issue }
}

/** The same key and certificate as a PKCS#12 store. */
export const toPkcs12 = (certificate: Certificate, password: string): string => {
  const out = certificate.file.replace(/\.pem$/, ".p12")
  openssl(
    "pkcs12",
    "-export",
    "-inkey",
    certificate.keyFile,
    "-in",
    certificate.certificateFile,
    "-passout",
    `pass:${password}`,
    "-out",
    out
  )
  return out
}

/** The key, encrypted. */
export const toEncryptedKey = (certificate: Certificate, password: string): string => {
  const out = certificate.keyFile.replace(/\.key$/, ".encrypted.key")
  openssl("pkcs8", "-topk8", "-in", certificate.keyFile, "-passout", `pass:${password}`, "-out", out)
  return out
}
