/** `npm run simulate -- --seeds N --from K [--mode share|consumer|kip-1289] [--mutate W1]`: see test/simulation/README.md. */
import { simulateCommand } from "../test/simulation/command.ts"

process.exitCode = await simulateCommand(process.argv.slice(2), (line) => process.stdout.write(`${line}\n`))
