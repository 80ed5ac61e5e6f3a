/** `npm run bench:micro`: prints what each operation of the core takes: instructions, time, and what it allocates. */
import { allocations, hasValgrind, time, work } from "./measures.ts"

const allocated = await allocations()
const { micros } = await time()
const counted = hasValgrind() ? (await work("instructions")).instructions : undefined
console.table(Object.fromEntries(
  Object.keys(micros).map((name) => [name, {
    ...(counted === undefined ? {} : { instructions: counted[name] }),
    "µs": Number(micros[name]?.toPrecision(3)),
    "heap bytes": allocated.heapBytes?.[name],
    "buffer bytes": allocated.bufferBytes?.[name]
  }])
))
if (counted === undefined) console.log("valgrind is not there, so no instructions were counted")
