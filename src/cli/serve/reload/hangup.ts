import { closeSync, openSync } from 'node:fs'
import type { Logger } from '../../../common/log.js'

/**
 * Calls back at each SIGHUP. A terminal that is closed sends it, too, and the process ends then, as it does without a
 * listener: what it has acknowledged is on the disk, and an end in order would write to the terminal.
 * @returns ends that
 */
export function onHangup(reload: () => void): () => void {
  const inTerminal = process.stdin.isTTY === true
  const onSignal = () => {
    if (!inTerminal || !terminalIsGone()) return reload()
    end()
    process.kill(process.pid, 'SIGHUP')
  }
  const end = () => process.off('SIGHUP', onSignal)
  process.on('SIGHUP', onSignal)
  return end
}

/** A process without its terminal cannot open it: https://man7.org/linux/man-pages/man4/tty.4.html */
function terminalIsGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}

/** Passes SIGHUP on, once there is a server to reload. Before that, the server reads its configuration anyway. */
export class Hangups {
  readonly #log: Logger
  #reload: (() => Promise<unknown>) | undefined
  readonly close: () => void

  constructor(log: Logger) {
    this.#log = log
    this.close = onHangup(() => this.#received())
  }

  pass(reload: () => Promise<unknown>): void {
    this.#reload = reload
  }

  #received(): void {
    if (this.#reload) this.#reload().catch(() => {})
    else this.#log.warn('SIGHUP came while the server was starting, and is ignored')
  }
}
