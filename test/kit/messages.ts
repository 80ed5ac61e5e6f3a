/** Every API declared in src/wire/messages, by file name: a new file is in every test over all of them by itself. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import type { Api, Fields } from "../../src/wire/schema.ts"
import { projectRoot } from "./paths.ts"

export type AnyApi = Api<Fields, Fields>

const folder = join(projectRoot, "src/wire/messages")

export const messageFiles: ReadonlyArray<string> = readdirSync(folder)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.slice(0, -3))
  .sort()

/** What a file exports under its own name. */
export const loadApi = async (file: string): Promise<AnyApi> => {
  const module = await import(join(folder, `${file}.ts`)) as Record<string, AnyApi>
  const api = module[file]
  if (api === undefined) throw new Error(`src/wire/messages/${file}.ts exports no ${file}`)
  return api
}

export const loadAllApis = (): Promise<ReadonlyArray<AnyApi>> => Promise.all(messageFiles.map(loadApi))

export const versionsOf = (api: AnyApi): ReadonlyArray<number> =>
  Array.from({ length: api.versions.max - api.versions.min + 1 }, (_, i) => api.versions.min + i)
