import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Kills a process as a power cut would, and waits until it is gone: nothing of it gets into the folder that a test removes then. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}
