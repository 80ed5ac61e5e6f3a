/**
 * `npm run test:page`: the page for people in a real Chromium (browser/README.md), closed by "N passed, N failed".
 * Where no browser is found and none may be installed, nothing is run: one line says so, and the exit code is 0.
 *
 * Screenshots, light and dark, of a desktop and a phone, go to .work/page. Arguments go to vitest.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { close, minutes, root, tests } from "./stages.ts"

const args = process.argv.slice(2)
const { status, stdout } = spawnSync("sh", [join(root, "browser/chromium.sh")], {
  encoding: "utf8",
  stdio: ["ignore", "pipe", "inherit"],
  timeout: minutes(10),
  killSignal: "SIGKILL"
})
if (status === 3) console.log(`The page was not tested: ${stdout.trim()}`)
else if (status !== 0) close([{ passed: 0, failed: 1 }])
else {
  process.env["CHROMIUM"] = stdout.trim()
  const config = join(root, "browser/vitest.config.ts")
  close([
    tests({ name: "the page", args: ["--config", config, ...args], timeout: minutes(5), chosen: args.length > 0 })
  ])
}
