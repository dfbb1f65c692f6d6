import { EXIT_FAILURE } from '../../failure.js'

/**
 * A terminal sends Ctrl-C to npm and to this process, and npm forwards it: two signals within this time are one, ms.
 */
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
