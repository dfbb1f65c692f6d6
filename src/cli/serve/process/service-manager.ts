import { spawn } from 'node:child_process'
import type { Logger } from '../../../common/log.js'
import { variable } from '../../config/config.js'

type Notify = (...state: string[]) => Promise<void>

/**
 * Tells systemd when the server is ready and when it stops, and answers its watchdog while the event loop runs
 * (https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html). Does nothing where `NOTIFY_SOCKET` is
 * absent. Node has no datagram sockets by path, so that `systemd-notify` sends; the unit needs `NotifyAccess=all` for
 * it.
 */
export class ServiceManager {
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
