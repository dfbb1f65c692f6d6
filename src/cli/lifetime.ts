import { EXIT_FAILURE } from './failure.js'

/** What was started, in order; ended in the opposite one. */
export class Lifetime {
  readonly #endings: (() => Promise<unknown>)[] = []

  /** `end` is called by `end()`, before those of everything that was added earlier. */
  add(end: () => Promise<unknown>): void {
    this.#endings.push(end)
  }

  /** Ends all, also when one fails; then throws the first failure. */
  async end(): Promise<void> {
    const failures: unknown[] = []
    for (let end = this.#endings.pop(); end; end = this.#endings.pop()) {
      await end().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
}

/** A terminal sends Ctrl-C to npm and to us, and npm sends it on: within this time two are one, ms. */
const SAME_SIGNAL_MS = 500

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first = 0
    const onSignal = (signal: NodeJS.Signals) => {
      if (first === 0) {
        first = performance.now()
        resolve(signal)
      } else if (performance.now() - first > SAME_SIGNAL_MS) process.exit(EXIT_FAILURE)
    }
    process.on('SIGINT', onSignal)
    process.on('SIGTERM', onSignal)
  })
}
