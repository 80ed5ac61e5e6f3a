/**
 * Configuration providers: MirrorMaker 2 lets the file choose their names and classes (`config.providers = vault`), here
 * they are `env` and `file`. References are renamed to those; what another class would have to answer is refused.
 */
import type { Written } from "./written.ts"

type Known = "env" | "file"
const CLASSES: ReadonlyMap<string, Known> = new Map([
  ["org.apache.kafka.common.config.provider.EnvVarConfigProvider", "env"],
  ["org.apache.kafka.common.config.provider.FileConfigProvider", "file"],
  ["EnvVarConfigProvider", "env"],
  ["FileConfigProvider", "file"]
])

export interface Providers {
  /** By the name that the file gives them: what they are here, or the class that cannot be had. */
  readonly byName: ReadonlyMap<string, { readonly known: Known } | { readonly foreign: string }>
}

export const isProviderSetting = (key: string): boolean =>
  key === "config.providers" || key.startsWith("config.providers.")

export const readProviders = (settings: ReadonlyArray<Written>): Providers => {
  const said = (key: string) => settings.find((setting) => setting.key === key)?.value
  const byName = new Map<string, { readonly known: Known } | { readonly foreign: string }>([
    ["env", { known: "env" }],
    ["file", { known: "file" }]
  ])
  for (const name of (said("config.providers") ?? "").split(",").map((part) => part.trim())) {
    const type = said(`config.providers.${name}.class`)
    if (name === "" || type === undefined) continue
    const known = CLASSES.get(type)
    byName.set(name, known === undefined ? { foreign: type } : { known })
  }
  return { byName }
}

/** As src/config/references.ts reads them. */
const REFERENCE = /\$\{([^}:]*):/g

/** The value with our providers' names. `foreign`: a provider that it needs and that cannot be had, with its class. */
export const translateReferences = (
  value: string,
  providers: Providers
): { readonly value: string; readonly foreign: { readonly name: string; readonly type: string } | null } => {
  let foreign: { readonly name: string; readonly type: string } | null = null
  const translated = value.replace(REFERENCE, (all: string, name: string) => {
    const provider = providers.byName.get(name)
    // Kafka leaves what no provider answers as it stands.
    if (provider === undefined) return `$${all}`
    if ("known" in provider) return `\${${provider.known}:`
    foreign = { name, type: provider.foreign }
    return all
  })
  return { value: translated, foreign }
}
