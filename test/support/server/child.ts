import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

const ends = new Set<() => void>()

function end(): void {
  for (const run of ends) run()
  ends.clear()
}

/** What tap sends at the time limit of a test, and what others send. */
const SIGNALS = ['SIGALRM', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Runs something when this process ends without the end of its tests, by a signal or a crash. Returns what takes it
 * back.
 */
export function whenWeEnd(run: () => void): () => void {
  if (ends.size === 0) {
    process.once('exit', end)
    for (const signal of SIGNALS) process.prependOnceListener(signal, ended)
  }
  ends.add(run)
  return () => {
    ends.delete(run)
    if (ends.size > 0) return
    process.off('exit', end)
    for (const signal of SIGNALS) process.off(signal, ended)
  }
}

/** A signal ends the process as it would without us: by another listener, or by itself. */
function ended(signal: NodeJS.Signals): void {
  end()
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
}

/** A test that is ended, by its time limit perhaps, leaves no process behind. */
export function endsWithUs(child: ChildProcess): void {
  const forget = whenWeEnd(() => child.kill('SIGKILL'))
  child.once('exit', forget)
}

/**
 * Kills a process as a power cut would, and waits until it is gone: nothing of it gets into the folder that a test
 * removes then.
 */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}
