/**
 * The nearest valid name to a misspelt one, for error messages.
 *
 * Distance is Damerau-Levenshtein in its optimal string alignment form: insertions, deletions, substitutions and
 * swaps of neighbours cost one each. Case does not count, and "_" and "-" are taken for ".".
 */

const folded = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, ".")

/** Edits between two names. 0 when they are the same. */
export const editDistance = (left: string, right: string): number => {
  let older: Array<number> = []
  let previous = Array.from({ length: right.length + 1 }, (_, i) => i)
  for (let i = 1; i <= left.length; i++) {
    const current = [i]
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1]
      let best = Math.min(
        (previous[j] as number) + 1,
        (current[j - 1] as number) + 1,
        (previous[j - 1] as number) + (same ? 0 : 1)
      )
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]
      if (swapped) best = Math.min(best, (older[j - 2] as number) + 1)
      current.push(best)
    }
    older = previous
    previous = current
  }
  return previous[right.length] as number
}

/**
 * The candidate closest to `name`, or null when none is close: a wild guess helps nobody. Names of other languages
 * than ours (a setting without its last word, or with one too many) are near when one contains the other.
 */
export const nearest = (name: string, candidates: Iterable<string>): string | null => {
  const wanted = folded(name)
  let best: { readonly candidate: string; readonly distance: number } | null = null
  for (const candidate of candidates) {
    const distance = editDistance(wanted, folded(candidate))
    if (best === null || distance < best.distance) best = { candidate, distance }
  }
  if (best === null) return null
  const limit = Math.max(1, Math.ceil(Math.min(wanted.length, best.candidate.length) / 3))
  if (best.distance <= limit) return best.candidate
  const containing = [...candidates].filter((c) =>
    wanted.length >= 4 && (folded(c).includes(wanted) || wanted.includes(folded(c)))
  )
  return containing.toSorted((a, b) => Math.abs(a.length - name.length) - Math.abs(b.length - name.length))[0] ?? null
}
