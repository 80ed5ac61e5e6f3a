/**
 * The lowest target offset that a record can have whose place is not known. What it rests on differs:
 *
 * - exactly-once: a record and its note are one transaction. The target's last stable offset is read first, then all
 *   notes: what is below that offset and committed has its note among them.
 * - order is kept: a partition's records come one after the other, so what comes is behind what is known.
 * - at-least-once through a share group: an output may be on the target for a while before its note is, anywhere behind
 *   where the target ended when its record came to the source. So looks at both ends are kept: a record that is not in
 *   the map and lies at or behind the source's end of a look is, on the target, at or behind the target's end of that
 *   look. Where no look is old enough, there is no floor yet.
 *
 * Pure. A floor never falls.
 */
export type FloorRule = "transactions" | "order" | "looks"

export interface Look {
  /** The source's high watermark, asked after `target`; 0 when the group had nothing left to do then. */
  readonly source: number
  /** The target's end. */
  readonly target: number
}

/** More looks than that are thinned out: every second of the older half goes. */
const MAX_LOOKS = 256

export class Floors {
  readonly #stable = new Map<string, number>()
  readonly #looks = new Map<string, Array<Look>>()

  /** Everything committed below is in the map. */
  stable(place: string, offset: number): void {
    this.#stable.set(place, Math.max(offset, this.#stable.get(place) ?? 0))
  }

  look(place: string, look: Look): void {
    const looks = this.#looks.get(place) ?? []
    const last = looks[looks.length - 1]
    if (last !== undefined && last.source === look.source && last.target <= look.target) looks.pop()
    looks.push(look)
    this.#looks.set(
      place,
      looks.length <= MAX_LOOKS ? looks : looks.filter((_, n) => n >= MAX_LOOKS / 2 || n % 2 === 0)
    )
  }

  /**
   * `open`: the first source offset from the position on that is not in the map; `end`: behind the highest target
   * offset in the map. Null: not known yet.
   */
  of(rule: FloorRule, place: string, open: number, end: number): number | null {
    const stable = this.#stable.get(place)
    switch (rule) {
      case "order":
        return Math.max(stable ?? 0, end)
      case "transactions":
        return stable ?? null
      case "looks": {
        const fitting = (this.#looks.get(place) ?? []).filter((look) => look.source <= open)
        return fitting.length === 0 ? null : Math.max(...fitting.map((look) => look.target))
      }
    }
  }
}
