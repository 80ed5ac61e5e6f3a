import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { KAFKA_ERRORS, kafkaError } from "../../src/wire/kafkaErrors.ts"
import { projectRoot, versions } from "../kit/paths.ts"

interface JavaError {
  readonly code: number
  readonly name: string
  /** What its exception class says: refresh, retriable, authorization or "". */
  readonly kind: string
}

const program = `
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.errors.*;
public class ListErrors {
  static String kind(Exception x) {
    if (x instanceof RefreshRetriableException) return "refresh";
    if (x instanceof RetriableException) return "retriable";
    return x instanceof AuthorizationException ? "authorization" : "";
  }
  public static void main(String[] args) {
    for (Errors e : Errors.values()) System.out.println(e.code() + " " + e.name() + " " + kind(e.exception()));
  }
}
`

/** The enum of the Java client, from its own jar. */
const javaErrors = (): ReadonlyArray<JavaError> => {
  const folder = mkdtempSync(join(tmpdir(), "onceover-errors-"))
  try {
    writeFileSync(join(folder, "ListErrors.java"), program)
    const kafka = execFileSync(join(projectRoot, "scripts/kafka-jars.sh"), [versions.kafka], { encoding: "utf8" })
      .trim()
    const printed = execFileSync("java", ["-cp", `${kafka}/libs/*`, join(folder, "ListErrors.java")], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
    return printed.trim().split("\n").map((line) => {
      const [code, name, kind] = line.split(" ")
      return { code: Number(code), name: name as string, kind: kind ?? "" }
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Where a mirror must know more than Java's exception class says. */
const FINER: Readonly<Record<string, string>> = {
  NOT_CONTROLLER: "refresh",
  REBOOTSTRAP_REQUIRED: "refresh",
  COORDINATOR_NOT_AVAILABLE: "coordinator",
  NOT_COORDINATOR: "coordinator",
  SASL_AUTHENTICATION_FAILED: "authorization"
}
const FINAL = new Set(["fenced", "abortable", "record", "fatal", "none"])

describe("Kafka's error codes", () => {
  it("are those of the Java enum, all of them, with its names and its idea of what may be tried again", () => {
    const java = javaErrors()
    assert.isAbove(java.length, 130)
    assert.deepStrictEqual(
      [...KAFKA_ERRORS.keys()].sort((a, b) => a - b),
      java.map((e) => e.code).sort((a, b) => a - b)
    )
    for (const { code, kind, name } of java) {
      const ours = kafkaError(code)
      assert.strictEqual(ours.name, name)
      const wanted = FINER[name] ?? kind
      if (wanted === "") assert.isTrue(FINAL.has(ours.class), `${name} is ${ours.class}, but Java does not retry it`)
      else assert.strictEqual(ours.class, wanted, name)
    }
  })

  it("each have a sentence without a full stop, for it stands inside another one", () => {
    for (const { name, sentence } of KAFKA_ERRORS.values()) assert.match(sentence, /^[a-z][^.]*(\.[a-z][^.]*)*$/, name)
  })

  it("that are unknown are fatal", () => {
    assert.deepInclude(kafkaError(9999), { name: "ERROR_9999", class: "fatal" })
  })
})
