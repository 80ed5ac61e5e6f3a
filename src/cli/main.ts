/** The program: what bin/onceover runs. */
import { loadPipeline } from "./ports.ts"
import { runProcess } from "./process.ts"

runProcess(process.argv.slice(2), process.env, loadPipeline)
