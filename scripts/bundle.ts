/**
 * The program in few files: what of src and of the packages `onceover` uses, without comments. It starts in a quarter of
 * the time and half the memory that some 2,000 modules cost (docs/decisions/0012-the-bundle.md).
 *
 * Run by the setup, it writes .tools/program/SUM for bin/onceover, where SUM names the sources (sources.sh): a clone
 * whose sources have changed since runs the sources. `npm run build` puts one into the npm package.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join, relative, resolve } from "node:path"
import { rolldown } from "rolldown"
import { minutes, root } from "./stages.ts"

/** Native add-ons stay packages: they find their binary beside their own files. */
const EXTERNAL = [/^node:/, /^@confluentinc\/kafka-javascript/, /^@node-rs\//, /^lz4-napi/, /^snappy/]

export interface BundleOptions {
  /** Made new. */
  readonly folder: string
  /** Where files that the program reads lie as they do in src. */
  readonly assets: string
}

/** Throws what rolldown finds wrong. */
export const bundle = async ({ assets, folder }: BundleOptions): Promise<void> => {
  const src = join(root, "src")
  const build = await rolldown({
    cwd: root,
    input: { main: join(src, "cli/main.ts") },
    platform: "node",
    external: EXTERNAL,
    // Its entry loads every client and schema registry that it has, of which we use the connection.
    treeshake: { moduleSideEffects: (id) => !id.includes("/node_modules/@platformatic/") },
    plugins: [{
      name: "own-place",
      transform: {
        filter: { id: { include: `${src}/**` }, code: "import.meta.url" },
        handler: (code, id) => {
          const place = relative(folder, join(assets, relative(src, id)))
          return code.replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url)`)
        }
      }
    }]
  })
  try {
    await build.write({
      dir: folder,
      format: "esm",
      comments: false,
      // Names stay: an error's is part of what a dead letter and a log say.
      minify: { compress: true, mangle: false, codegen: true },
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js"
    })
  } finally {
    await build.close()
  }
}

const sources = (): string => spawnSync("sh", [join(root, "scripts/sources.sh")], { encoding: "utf8" }).stdout.trim()

/** Something may just be starting from one that is not. */
const isOld = (folder: string): boolean => Date.now() - statSync(folder).mtimeMs > minutes(60)

/** For this clone; what was bundled from other sources goes in time. */
const ofClone = async (): Promise<string> => {
  const programs = join(root, ".tools/program")
  const sum = sources()
  if (existsSync(join(programs, sum, "main.js"))) return "in place"
  mkdirSync(programs, { recursive: true })
  // Made beside and renamed: a run that is cut short, or two at once, leave nothing that looks finished.
  const part = join(programs, `.part-${process.pid}`)
  try {
    await bundle({ folder: part, assets: join(root, "src") })
    if (sources() !== sum) return "not bundled: the sources were changed meanwhile"
    for (const old of readdirSync(programs)) {
      if (isOld(join(programs, old))) rmSync(join(programs, old), { recursive: true, force: true })
    }
    if (!existsSync(join(programs, sum))) renameSync(part, join(programs, sum))
    return "bundled"
  } finally {
    rmSync(part, { recursive: true, force: true })
  }
}

/** bundle.ts [FOLDER ASSETS]: without, for this clone. */
const main = async (folder?: string, assets?: string): Promise<void> => {
  if (folder === undefined || assets === undefined) return console.log(await ofClone())
  await bundle({ folder: resolve(root, folder), assets: resolve(root, assets) })
}

if (import.meta.main) await main(...process.argv.slice(2))
