import { uptime } from 'node:os'
import { z } from 'zod'

/** The addresses of a server that runs with a data folder, as programs of this machine reach them. */
export const runningServer = z.object({
  pid: z.int().positive(),
  /** When the machine started, ms since 1970: another one has other processes. */
  boot: z.number(),
  endpoint: z.string().optional(),
  region: z.string().optional(),
  gateway: z.string(),
  platform: z.string().optional(),
  payment: z.string().optional(),
})

export type RunningServer = z.infer<typeof runningServer>

/** The clock of the machine may be set while it runs. */
const SAME_BOOT_MS = 10 * 60_000

/** When this machine started, ms since 1970. */
export function bootTime(): number {
  return Math.round(Date.now() - uptime() * 1000)
}

/** True if the process of the record runs on this machine, as far as this user can see. */
export function isRunning({ pid, boot }: Pick<RunningServer, 'pid' | 'boot'>): boolean {
  if (Math.abs(boot - bootTime()) > SAME_BOOT_MS) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Another user's process.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
