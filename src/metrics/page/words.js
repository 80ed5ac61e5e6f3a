/** Numbers and times for people. No DOM here. */

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 })
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 })
const fine = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 })

/** @param {number | null} n */
export const count = (n) => n === null ? "unknown" : whole.format(n)

/** Three digits and a letter: for where there is little room. @param {number | null} n */
export const brief = (n) => n === null ? "unknown" : short.format(n)

/** Below ten with a fraction, so that a slow flow does not look like one that stands. @param {number} n */
export const rate = (n) => n > 0 && n < 10 ? fine.format(n) : whole.format(n)

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"]

/** @param {number | null} n */
export const bytes = (n) => {
  if (n === null) return "unknown"
  let unit = 0
  let value = n
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`
}

/** A time span, to two units at most. @param {number} seconds */
export const span = (seconds) => {
  const s = Math.max(0, Math.floor(seconds))
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor(s % 86_400 / 3600)} h`
}

/** @param {number | null} seconds */
export const latency = (seconds) => {
  if (seconds === null) return "unknown"
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  return span(seconds)
}

/** @param {number} ms */
export const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false })

/**
 * "1 flow", "2 flows".
 * @param {number} n
 * @param {string} one
 */
export const many = (n, one) => `${whole.format(n)} ${one}${n === 1 ? "" : "s"}`
