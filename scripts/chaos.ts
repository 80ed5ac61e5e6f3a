/** `npm run chaos -- --seed N --minutes M [--scenario NAME]`: see test/chaos/README.md. */
import { chaosCommand } from "../test/chaos/command.ts"

process.exitCode = await chaosCommand(process.argv.slice(2), (line) => process.stdout.write(`${line}\n`))
