/**
 * `npm run build` (and npm pack, before it packs): dist/ for the npm package. The library is src as JavaScript with types
 * (Node strips types of a project's own files, but of none under node_modules), the program a bundle.
 */
import { spawnSync } from "node:child_process"
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { bundle } from "./bundle.ts"
import { minutes, root } from "./stages.ts"

const dist = join(root, "dist")
rmSync(dist, { recursive: true, force: true })
const { status } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", "tsconfig.build.json"], {
  cwd: root,
  stdio: ["ignore", "inherit", "inherit"],
  timeout: minutes(5)
})
// The page's files are served as they are.
cpSync(join(root, "src/metrics/page"), join(dist, "metrics/page"), {
  recursive: true,
  filter: (path) => !path.endsWith("tsconfig.json")
})
await bundle({ folder: join(dist, "program"), assets: dist })
process.exitCode = status === 0 ? 0 : 1
