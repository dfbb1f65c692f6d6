import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import { isInstalled } from '../support/programs/run.js'
import { endsWithUs, killed } from '../support/server/child.js'
import { CLI, environment } from '../support/server/cli.js'
import { until } from '../support/waiting.js'

/** For tests that need a terminal: `script` gives it, https://man7.org/linux/man-pages/man1/script.1.html */
export const withoutTerminal: string | false =
  process.platform !== 'linux' || !isInstalled('script') ? 'needs script of util-linux' : false

/** A command of dealgate at a terminal of its own. */
export interface AtTerminal {
  /** What the terminal has got so far, with its line ends `\r\n`. */
  readonly shown: string
  /** Process id of dealgate; 0 before it is shown. */
  readonly pid: number
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>
  /** Takes the terminal away. */
  close(): void
}

/** @param redirect of a shell, such as `>file`: what of the command has no terminal */
export function atTerminal(
  t: Test,
  args: readonly string[],
  { env = {}, redirect = '' }: { readonly env?: Record<string, string>; readonly redirect?: string } = {},
): AtTerminal {
  const words = [process.execPath, ...CLI, ...args].map((word) => `'${word}'`).join(' ')
  const terminal = spawn('script', ['-qefc', `echo "pid=$$"; exec ${words} ${redirect}`, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: environment({ ...env, SHELL: '/bin/sh' }),
  })
  endsWithUs(terminal)
  t.teardown(() => killed(terminal))
  let shown = ''
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
  return {
    get shown() {
      return shown
    },
    get pid() {
      return Number(/pid=(\d+)\r\n/.exec(shown)?.[1] ?? 0)
    },
    ended: once(terminal, 'close').then(([code]) => code),
    close: () => void terminal.kill('SIGKILL'),
  }
}

export async function untilShown(terminal: AtTerminal, text: string | RegExp): Promise<void> {
  const found = () => (typeof text === 'string' ? terminal.shown.includes(text) : text.test(terminal.shown))
  await until(`the terminal shows ${text}`, found)
}
