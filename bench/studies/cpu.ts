import { readFile } from 'node:fs/promises'

/** Seconds of CPU a process has used so far, in user and kernel mode. */
export interface Cpu {
  /** Every thread: proxy, embedded gateway, and the pool that reads and writes files. */
  readonly process: number
  /** The first thread alone, which is the proxy's. */
  readonly main: number
}

/** Ticks a second of the times in /proc, which is 100 on every Linux that Node runs on (`getconf CLK_TCK`). */
const TICKS = 100

/** From /proc, whose figures come in steps of 10 ms. */
export async function cpuOf(pid: number): Promise<Cpu> {
  const [whole, main] = await Promise.all([seconds(`/proc/${pid}/stat`), seconds(`/proc/${pid}/task/${pid}/stat`)])
  return { process: whole, main }
}

/** proc(5): utime and stime are fields 14 and 15; the second field is a name in parentheses that may hold spaces. */
async function seconds(path: string): Promise<number> {
  const stat = await readFile(path, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS
}
