import { spawn } from 'node:child_process'
import cluster from 'node:cluster'
import { Worker } from 'node:worker_threads'
import { CleanupStack } from '../../common/cleanup-stack.js'
import { collectWhenIdle } from '../../common/idle-heap.js'
import { createLogger, type Logger } from '../../common/log.js'
import { EXIT_FAILURE } from '../command.js'
import { type Config, unknownVariables, variable } from '../config/config.js'

/** Time beyond the grace that closing takes at most, if no other bound is configured, ms. */
const MAX_CLOSING_MS = 20_000

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

/**
 * Runs until a signal. A failed start stops everything.
 * @param start resolves to the start message; `cleanup` gets what stops what it starts
 */
export async function runUntilSignal(
  config: Config,
  start: (log: Logger, cleanup: CleanupStack) => Promise<string>,
): Promise<void> {
  const signalled = untilSignal()
  const log = createLogger({ level: config.logLevel, format: config.logFormat })
  boundStop(signalled, config, log)
  for (const warning of unknownVariables()) log.warn(warning)
  const manager = new ServiceManager(log)
  const cleanup = new CleanupStack()
  try {
    process.stdout.write(await start(log, cleanup))
    await manager.ready()
    collectWhenIdle()
    log.info({ signal: await signalled }, 'shutting down')
    await manager.stopping()
  } finally {
    await cleanup.close()
  }
}

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
function untilSignal(): Promise<NodeJS.Signals> {
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

/** Longest time that running requests get after a signal, ms. */
export function endingMs(config: Pick<Config, 'shutdownDelayMs' | 'shutdownGraceMs'>): number {
  return config.shutdownDelayMs + config.shutdownGraceMs
}

/**
 * Ends the process and its workers when they still run at the end of the time that a stop may take: a store, a plugin
 * or a log that hangs must not keep the process.
 */
function boundStop(
  signalled: Promise<unknown>,
  config: Pick<Config, 'stopMs' | 'shutdownDelayMs' | 'shutdownGraceMs'>,
  log: Logger,
): void {
  const ms = config.stopMs ?? endingMs(config) + MAX_CLOSING_MS
  void signalled.then(() => {
    new Worker(WATCHDOG, { eval: true, workerData: ms + LAST_WORDS_MS }).unref()
    setTimeout(() => {
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL')
      log.error({ stopMs: ms }, 'the server did not stop in time: what hangs is abandoned')
      process.exit(EXIT_FAILURE)
    }, ms).unref()
  })
}

type Notify = (...state: string[]) => Promise<void>

/**
 * Tells systemd when the server is ready and when it stops, and answers its watchdog while the event loop runs
 * (https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html). Does nothing where `NOTIFY_SOCKET` is
 * absent. Node has no datagram sockets by path, so that `systemd-notify` sends; the unit needs `NotifyAccess=all` for
 * it.
 */
class ServiceManager {
  readonly #notify: Notify | undefined
  #watchdog: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#notify = variable('NOTIFY_SOCKET') ? (...state) => send(state, log) : undefined
  }

  async ready(): Promise<void> {
    if (this.#notify === undefined) return
    await this.#notify('READY=1', 'STATUS=Serving requests')
    const ms = Number(variable('WATCHDOG_USEC')) / 1000
    const isOurs = [undefined, String(process.pid)].includes(variable('WATCHDOG_PID'))
    if (ms > 0 && isOurs) this.#watchdog = setInterval(() => this.#notify?.('WATCHDOG=1'), ms / 2).unref()
  }

  async stopping(): Promise<void> {
    clearInterval(this.#watchdog)
    await this.#notify?.('STOPPING=1', 'STATUS=Ending requests')
  }
}

/** Resolves when systemd has the message, or when it cannot be sent. */
function send(state: readonly string[], log: Logger): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn('systemd-notify', state, { stdio: 'ignore' })
    const failed = (reason: unknown) => {
      log.warn({ reason, state }, 'could not notify systemd: the unit needs Type=notify and NotifyAccess=all')
      resolve()
    }
    child.on('error', (error) => failed(error.message))
    child.on('exit', (code) => (code === 0 ? resolve() : failed(`exit code ${code}`)))
  })
}
