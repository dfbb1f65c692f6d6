import cluster from 'node:cluster'
import { Worker } from 'node:worker_threads'
import type { Logger } from '../../../common/log.js'
import type { Config } from '../../config/config.js'
import { EXIT_FAILURE } from '../../failure.js'

/** Time beyond the grace that closing takes at most, if no other bound is configured, ms. */
const CLOSING_MS = 20_000
/** Time for the last line of the log, ms. */
const LAST_WORDS_MS = 1000
/** Ends the process also when its main thread is blocked, by a log that nothing reads or a plugin. */
const WATCHDOG = `
  const { workerData } = require('node:worker_threads')
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), workerData)`

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

/**
 * Ends the process and its workers when they still run at the end of the time that a stop may take: a store, a plugin
 * or a log that hangs must not keep the process.
 */
export function boundStop(
  signalled: Promise<unknown>,
  { stopSeconds, shutdownGraceSeconds }: Pick<Config, 'stopSeconds' | 'shutdownGraceSeconds'>,
  log: Logger,
): void {
  const ms = stopSeconds === undefined ? shutdownGraceSeconds * 1000 + CLOSING_MS : stopSeconds * 1000
  void signalled.then(() => {
    new Worker(WATCHDOG, { eval: true, workerData: ms + LAST_WORDS_MS }).unref()
    setTimeout(() => {
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL')
      log.error({ stopMs: ms }, 'the server did not stop in time: what hangs is abandoned')
      process.exit(EXIT_FAILURE)
    }, ms).unref()
  })
}
