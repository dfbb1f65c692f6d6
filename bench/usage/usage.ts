import { readFile } from 'node:fs/promises'

/** Ticks a second of the times in /proc: 100 on every Linux that Node runs on (`getconf CLK_TCK`). */
const TICKS = 100

/** Seconds of CPU that a process and its children have used so far, in user and kernel mode, in steps of 10 ms. */
export async function cpuSeconds(pid: number): Promise<number> {
  let sum = 0
  for (const one of await familyOf(pid)) {
    // proc(5): utime and stime are fields 14 and 15, those of children that have ended 16 and 17; the second is a name
    // in parentheses, which may contain spaces.
    const stat = await readFile(`/proc/${one}/stat`, 'utf8').catch(() => '')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    for (const field of fields.slice(11, 15)) sum += Number(field) / TICKS
  }
  return sum
}

/** Largest resident set so far, bytes; the sum of a process and its children. */
export async function peakRss(pid: number): Promise<number> {
  let sum = 0
  for (const one of await familyOf(pid)) {
    const status = await readFile(`/proc/${one}/status`, 'utf8').catch(() => '')
    sum += Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
  }
  return sum
}

async function familyOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const families = await Promise.all(children.split(' ').filter(Boolean).map(Number).map(familyOf))
  return [pid, ...families.flat()]
}
