/**
 * What lies in deploy/ fits the program: names of metrics and labels, paths, ports, times, configurations. That it
 * also fits the programs that read it (Prometheus, Helm, Kubernetes, systemd, Docker) is npm run test:deploy's to say.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parse, parseAllDocuments } from "yaml"
import { SHUTDOWN_TIMEOUT_MS } from "../../src/config/flowSettings.ts"
import { type Instrument, INSTRUMENTS } from "../../src/metrics/instruments.ts"
import { metricsReference } from "../../src/metrics/reference.ts"
import { loadText } from "../kit/configFile.ts"
import { projectRoot } from "../kit/paths.ts"

const read = (path: string): string => readFileSync(join(projectRoot, "deploy", path), "utf8")

interface Rule {
  readonly record?: string
  readonly alert?: string
  readonly expr: string
  readonly annotations?: Readonly<Record<string, string>>
}
const rules = (parse(read("prometheus/rules.yaml")) as { groups: ReadonlyArray<{ rules: ReadonlyArray<Rule> }> }).groups
  .flatMap((group) => group.rules)

interface Panel {
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}
const panels = (JSON.parse(read("grafana/onceover.json")) as { panels: ReadonlyArray<Panel> }).panels

/** Labels by name of a metric as Prometheus has it, histograms by their parts. */
const exposed: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ...Object.entries<Instrument>(INSTRUMENTS).flatMap(([name, { kind, labels }]) => {
    const all = new Set(["flow", ...labels])
    return kind !== "histogram"
      ? [[name, all] as const]
      : [
        [`${name}_bucket`, new Set([...all, "le"])] as const,
        [`${name}_sum`, all] as const,
        [`${name}_count`, all] as const
      ]
  }),
  // The process's own are documented by the same page.
  ...[...metricsReference().matchAll(/^\| `((?:process|nodejs|onceover_build)[a-z_]*)` \|/gm)].map(([, name = ""]) =>
    [name, new Set(name === "onceover_build_info" ? ["version"] : [])] as const
  ),
  ...rules.flatMap(({ record }) => record === undefined ? [] : [[record, new Set(["flow"])] as const])
])

const namesIn = (expr: string): ReadonlyArray<string> =>
  [...expr.matchAll(/\b(?:onceover|process|nodejs)[a-z0-9_:]*/g)].map(([name]) => name)

/** Matchers of labels, "metric{label=": the metric and the label. */
const matchersIn = (expr: string): ReadonlyArray<readonly [string, string]> =>
  [...expr.matchAll(/([a-z0-9_:]+)\{([^}]*)\}/g)].flatMap(([, name = "", inside = ""]) =>
    [...inside.matchAll(/([a-z_]+)\s*[=!]/g)].map(([, label = ""]) => [name, label] as const)
  )

const assertKnown = (expr: string, where: string): void => {
  for (const name of namesIn(expr)) assert.isTrue(exposed.has(name), `${where}: there is no metric ${name}`)
  for (const [name, label] of matchersIn(expr)) {
    assert.isTrue(exposed.get(name)?.has(label), `${where}: ${name} has no label ${label}`)
  }
  const grouped = [...expr.matchAll(/(?:by|on) \(([^)]*)\)/g)].flatMap(([, inside = ""]) => inside.split(/,\s*/))
  const known = new Set(["instance", "job", ...namesIn(expr).flatMap((name) => [...exposed.get(name) ?? []])])
  for (const label of grouped) assert.isTrue(known.has(label), `${where}: nothing here has the label ${label}`)
}

describe("the alerts and the dashboard", () => {
  it("ask only for metrics and labels that there are", () => {
    for (const { alert, expr, record } of rules) assertKnown(expr, alert ?? record ?? "a rule")
    for (const { targets, title } of panels) for (const { expr } of targets ?? []) assertKnown(expr, title)
    assert.throws(() => assertKnown("rate(onceover_records_lost_total[5m])", "here"), /no metric/)
    assert.throws(() => assertKnown("onceover_lag_records{group=\"g\"}", "here"), /no label/)
    assert.throws(() => assertKnown("sum by (cluster) (onceover_lag_records)", "here"), /nothing here/)
  })

  it("never add up lag over processes, each of which reports the whole group's", () => {
    const all = [...rules, ...panels.flatMap(({ targets }) => targets ?? [])].map(({ expr }) => expr)
    const lags = all.filter((expr) => expr.includes("onceover_lag_records"))
    assert.isNotEmpty(lags)
    for (const expr of lags) assert.include(expr, "max by (flow, topic, partition) (onceover_lag_records")
  })

  it("say, for each alert, what it means and what to do, and each is in the rules' test", () => {
    const tested = read("prometheus/rules.test.yaml")
    for (const { alert, annotations } of rules) {
      if (alert === undefined) continue
      assert.isAbove(annotations?.["summary"]?.length ?? 0, 10, alert)
      assert.isAbove(annotations?.["description"]?.length ?? 0, 10, alert)
      assert.include(tested, alert)
    }
  })

  it("show every metric of a flow somewhere", () => {
    const shown = new Set(panels.flatMap(({ targets }) => targets ?? []).flatMap(({ expr }) => namesIn(expr)))
    const missing = Object.keys(INSTRUMENTS).filter((name) => !shown.has(name) && !shown.has(`${name}_bucket`))
    assert.deepStrictEqual(missing, [])
  })
})

interface Container {
  readonly args: ReadonlyArray<string>
  readonly env: ReadonlyArray<{ readonly name: string; readonly value?: string }>
  readonly securityContext: unknown
  readonly startupProbe: { readonly httpGet: { readonly path: string } }
  readonly livenessProbe: { readonly httpGet: { readonly path: string } }
  readonly readinessProbe: { readonly httpGet: { readonly path: string } }
}
interface Manifest {
  readonly kind: string
  readonly data: Readonly<Record<string, string>>
  readonly spec: {
    readonly serviceName?: string
    readonly scaleTargetRef?: { readonly kind: string; readonly name: string }
    readonly template: {
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: { readonly runAsNonRoot: boolean }
        readonly containers: ReadonlyArray<Container>
      }
    }
  }
  readonly metadata: { readonly name: string }
}
const manifests = parseAllDocuments(read("kubernetes/onceover.yaml")).map((document) => document.toJS() as Manifest)
const manifest = (kind: string): Manifest => {
  const found = manifests.find((one) => one.kind === kind)
  if (found === undefined) throw new Error(`no ${kind}`)
  return found
}

/** What connections and native clients take to close, beyond shutdown.timeout.ms (src/cli/process.ts). */
const CLOSING_SECONDS = 20

describe("the deployments", () => {
  it.effect("have configurations that onceover takes", () =>
    Effect.gen(function*() {
      for (
        const text of [read("docker/onceover.yaml"), manifest("ConfigMap").data["onceover.yaml"] ?? ""]
      ) {
        const { config, lines } = yield* loadText(text, { env: { INSTANCE_ID: "kafka.onceover-0" } })
        assert.deepStrictEqual(lines, [])
        assert.strictEqual(config?.instanceId, "kafka.onceover-0")
        assert.strictEqual(config?.http?.host, "0.0.0.0")
      }
    }))

  it("give a stop more time than the service takes for one", () => {
    const least = SHUTDOWN_TIMEOUT_MS / 1000 + CLOSING_SECONDS
    const { spec } = manifest("StatefulSet").spec.template
    assert.isAbove(spec.terminationGracePeriodSeconds, least)
    assert.isAbove(Number(/stop_grace_period: (\d+)s/.exec(read("docker/compose.yaml"))?.[1]), least)
    assert.isAbove(Number(/TimeoutStopSec=(\d+)/.exec(read("systemd/onceover.service"))?.[1]), least)
    assert.include(readFileSync(join(projectRoot, "src/cli/process.ts"), "utf8"), "CLOSING_MS = 20_000")
  })

  it("tell each process apart by a name that stays when it is replaced", () => {
    const [container] = manifest("StatefulSet").spec.template.spec.containers
    assert.strictEqual(container?.env.find(({ name }) => name === "INSTANCE_ID")?.value, "$(POD_NAMESPACE).$(POD_NAME)")
    assert.strictEqual(manifest("HorizontalPodAutoscaler").spec.scaleTargetRef?.kind, "StatefulSet")
    assert.include(read("docker/compose.yaml"), "INSTANCE_ID: compose-1")
    assert.include(read("systemd/onceover.service"), "INSTANCE_ID=%H")
  })

  it("run without root, write nothing to their image, and ask the paths that are served", () => {
    const { spec } = manifest("StatefulSet").spec.template
    const [container] = spec.containers
    assert.isTrue(spec.securityContext.runAsNonRoot)
    assert.deepInclude(container?.securityContext, { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
    assert.deepStrictEqual(
      [container?.startupProbe, container?.livenessProbe, container?.readinessProbe].map((probe) =>
        probe?.httpGet.path
      ),
      ["/health/live", "/health/live", "/health/ready"]
    )
    const image = read("docker/Dockerfile")
    assert.match(image, /^USER 1000:1000$/m)
    assert.include(image, "/health/live")
    assert.match(read("docker/compose.yaml"), /read_only: true/)
  })
})
