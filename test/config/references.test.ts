import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CLUSTERS, flowOf, load, loadFlow, loadText, minimal } from "../kit/configFile.ts"

describe("${env:NAME} and ${file:PATH:KEY}", () => {
  it.effect("are replaced anywhere in a value, as often as they stand there", () =>
    Effect.gen(function*() {
      const loaded = yield* load(
        minimal({
          clusters: {
            ...CLUSTERS,
            east: {
              "bootstrap.servers": "${env:HOST}:${env:PORT},b:2",
              "sasl.password": "${file:secrets.properties:east.password}"
            }
          }
        }, {
          topics: ["${env:PREFIX}.*", "x-${env:PREFIX}-${file:secrets.properties:suffix}"],
          "tasks.max": "${env:TASKS}"
        }),
        {
          env: { HOST: "a", PORT: "9092", PREFIX: "orders", TASKS: "7" },
          files: { "secrets.properties": "# passwords\neast.password = p#1;2=3\nsuffix:end\n" }
        }
      )
      assert.deepStrictEqual(loaded.config?.clusters.get("east")?.settings, {
        "bootstrap.servers": "a:9092,b:2",
        "sasl.password": "p#1;2=3"
      })
      assert.deepStrictEqual(flowOf(loaded).topics, ["orders.*", "x-orders-end"])
      assert.strictEqual(flowOf(loaded).tasksMax, 7)
    }))

  it.effect("put in text that is not looked at again: no reference, no YAML, no pattern of a replacement", () =>
    Effect.gen(function*() {
      const loaded = yield* load(
        minimal({
          clusters: { ...CLUSTERS, east: { "bootstrap.servers": "a:1", "sasl.password": "${env:A}|${env:B}" } }
        }),
        {
          env: { A: "${env:B}$&$1", B: "{ x: 1 } # y" }
        }
      )
      assert.strictEqual(loaded.config?.clusters.get("east")?.settings["sasl.password"], "${env:B}$&$1|{ x: 1 } # y")
    }))

  it.effect("may name a key with colons, as Kafka's file provider allows", () =>
    Effect.gen(function*() {
      const loaded = yield* loadFlow({ "group.id": "${file:s:a:b}" })
      assert.deepStrictEqual(loaded.lines, [
        "flows[0].group.id needs the file s, which cannot be read (there is no such file)"
      ])
      const found = yield* load(minimal({}, { "group.id": "${file:s:a:b}" }), { files: { s: "a\\:b=yes" } })
      assert.strictEqual(flowOf(found).groupId, "yes")
    }))

  it.effect("leave a plain ${ alone where it is doubled, and ${name} of a replacement always", () =>
    Effect.gen(function*() {
      const flow = flowOf(
        yield* loadFlow({
          transforms: ["route"],
          "transforms.route.type": "RegexRouter",
          "transforms.route.regex": "(?<name>.*)",
          "transforms.route.replacement": "${name}-$${env:X}-$1"
        })
      )
      assert.strictEqual(flow.transforms[0]?.params.get("replacement"), "${name}-${env:X}-$1")
    }))

  const missing: ReadonlyArray<readonly [value: string, line: string]> = [
    ["${env:NOPE}", "flows[0].group.id needs the environment variable NOPE, which is not set"],
    ["${env:}", "flows[0].group.id holds an incomplete reference; allowed: ${env:NAME}"],
    ["${env:a:b}", "flows[0].group.id holds an incomplete reference; allowed: ${env:NAME}"],
    ["${file:here.properties:nope}", "flows[0].group.id needs the key nope of here.properties, which has no such key"],
    [
      "${file:gone.properties:x}",
      "flows[0].group.id needs the file gone.properties, which cannot be read (there is no such file)"
    ],
    [
      "${file:bad.properties:x}",
      "flows[0].group.id needs the file bad.properties, which cannot be read (line 2 has a malformed \\u escape)"
    ],
    ["${file:.:x}", "flows[0].group.id needs the file ., which cannot be read (it is a folder)"],
    ["${file:here.properties}", "flows[0].group.id holds an incomplete reference; allowed: ${file:PATH:KEY}"],
    [
      "${vault:a:b}",
      "flows[0].group.id refers to a provider named \"vault\"; allowed: ${env:NAME}, ${file:PATH:KEY}, or $${ for a plain ${"
    ]
  ]
  for (const [value, line] of missing) {
    it.effect(`${value} that cannot be found is an error and never passes as text`, () =>
      Effect.gen(function*() {
        const loaded = yield* load(minimal({}, { "group.id": value }), {
          files: { "here.properties": "a=1", "bad.properties": "a=1\nb=\\u12\n" }
        })
        assert.deepStrictEqual(loaded.lines, [line])
      }))
  }

  it.effect("that is missing in a value is the only thing said of that value", () =>
    Effect.gen(function*() {
      const { lines } = yield* loadFlow({ "tasks.max": "${env:NOPE}", "replication.policy": "x-${env:NOPE}" })
      assert.deepStrictEqual(lines, [
        "flows[0].tasks.max needs the environment variable NOPE, which is not set",
        "flows[0].replication.policy needs the environment variable NOPE, which is not set"
      ])
    }))

  it.effect("do nothing in a comment or a key", () =>
    Effect.gen(function*() {
      const loaded = yield* loadText(
        "# ${env:NOPE}\nclusters: { east: { bootstrap.servers: \"a:1\" }, west: { bootstrap.servers: \"b:1\" } }\nflows: [{ source: east, target: west }]\n"
      )
      assert.strictEqual(flowOf(loaded).name, "east->west")
    }))
})
