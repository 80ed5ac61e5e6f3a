/** Where things go in a plot. No DOM here. */

/** @typedef {{ readonly x: number, readonly y: number }} Point */

/**
 * Round numbers from 0 to just above `max`: 3 to 6 of them. `max` of 0 gives 0 and 1.
 * @param {number} max
 * @returns {ReadonlyArray<number>}
 */
export const ticks = (max) => {
  if (!(max > 0)) return [0, 1]
  const rough = max / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power
  // Records come whole: no line between 0 and 1.
  const whole = Math.max(1, step)
  const found = []
  for (let n = 0; n <= Math.ceil(max / whole - 1e-9); n++) found.push(n * whole)
  return found
}

/**
 * The runs of neighbours that have a value: a hole stays a hole.
 * @param {ReadonlyArray<Point | null>} points
 * @returns {ReadonlyArray<ReadonlyArray<Point>>}
 */
export const runs = (points) => {
  /** @type {Array<Array<Point>>} */
  const found = []
  let open = false
  for (const point of points) {
    if (point === null) open = false
    else if (open) found[found.length - 1]?.push(point)
    else {
      found.push([point])
      open = true
    }
  }
  return found
}

const at = (/** @type {number} */ n) => n.toFixed(1)

/** @param {ReadonlyArray<Point>} run */
export const linePath = (run) => run.map(({ x, y }, n) => `${n === 0 ? "M" : "L"}${at(x)} ${at(y)}`).join("")

/**
 * The same, closed down to `floor`.
 * @param {ReadonlyArray<Point>} run
 * @param {number} floor
 */
export const areaPath = (run, floor) => {
  const [first] = run
  const last = run[run.length - 1]
  if (first === undefined || last === undefined) return ""
  return `${linePath(run)}L${at(last.x)} ${at(floor)}L${at(first.x)} ${at(floor)}Z`
}

/**
 * In words, for who does not see the plot.
 * @param {ReadonlyArray<number | null>} values oldest first
 * @param {(n: number) => string} word
 */
export const summary = (values, word) => {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return "nothing known yet"
  const last = values[values.length - 1]
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length
  const now = last === null || last === undefined ? "unknown" : word(last)
  return `now ${now}, lowest ${word(Math.min(...known))}, highest ${word(Math.max(...known))}, mean ${word(mean)}`
}
