/**
 * What may go wrong with one request, for tests and simulations.
 *
 * A hook sees every request before it is on its way and says what happens to it. `control` hooks answer for one
 * request and are gone then; whether one was used can be asked, so that a test knows that its fault has happened.
 */

/** A request as a hook sees it. */
export interface Passing {
  /** Name of the client: the one that `cluster(name)` was made with, or the client id of a connection. */
  readonly client: string
  readonly purpose: string
  readonly brokerId: number
  readonly apiKey: number
  readonly apiName: string
  readonly version: number
  /** Decoded; its type is that of the API's request. */
  readonly request: unknown
  readonly nowMs: number
}

export type Fault =
  /** The connection cannot be made; nothing was sent. */
  | { readonly kind: "refuse" }
  /** Lost on the way there; the connection closes at once, or the client waits until its time-out. */
  | { readonly kind: "loseRequest"; readonly then: "close" | "silence" }
  /** Carried out, and the answer is lost. */
  | { readonly kind: "loseAnswer"; readonly then: "close" | "silence" }
  /** The client's connection closes at once; the request is carried out this much later all the same. */
  | { readonly kind: "late"; readonly byMs: number }
  /** Carried out and answered, and carried out once more this much later (a copy in the network). */
  | { readonly kind: "duplicate"; readonly afterMs: number }
  /** On its way for this long; the answer too. */
  | { readonly kind: "delay"; readonly requestMs: number; readonly answerMs: number }
  /** Not carried out; this answer is given (decoded form of the API's response). */
  | { readonly kind: "answer"; readonly response: unknown }

/** null: nothing is wrong. */
export type FaultHook = (passing: Passing) => Fault | null

export interface Control {
  readonly apiKey: number
  /** null: this request is let through, and the hook stays. */
  readonly decide: FaultHook
  used: boolean
}

export class Faults {
  #always: FaultHook = () => null
  readonly #controls: Array<Control> = []

  /** Replaces the hook for every request. */
  setAlways(hook: FaultHook): void {
    this.#always = hook
  }

  control(apiKey: number, decide: FaultHook): Control {
    const control: Control = { apiKey, decide, used: false }
    this.#controls.push(control)
    return control
  }

  decide(passing: Passing): Fault | null {
    for (const control of this.#controls) {
      if (control.apiKey !== passing.apiKey) continue
      const fault = control.decide(passing)
      if (fault === null) continue
      control.used = true
      this.#controls.splice(this.#controls.indexOf(control), 1)
      return fault
    }
    return this.#always(passing)
  }
}
