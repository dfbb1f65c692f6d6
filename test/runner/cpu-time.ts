import { readFileSync } from 'node:fs'

/** Length of a clock tick in /proc on Linux, ms. */
const TICK_MS = 10

/** CPU time of this process and of its children that have ended, ms; without /proc, of this process alone. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000 + childrenMs()
}

/** The fields cutime and cstime of https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html. */
function childrenMs(): number {
  try {
    // The name of the program stands in parentheses, and may contain spaces.
    const [, rest = ''] = readFileSync('/proc/self/stat', 'utf8').split(/\) (?!.*\) )/s)
    const fields = rest.split(' ')
    return (Number(fields[13]) + Number(fields[14])) * TICK_MS
  } catch {
    return 0
  }
}
