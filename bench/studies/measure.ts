import { loadavg } from 'node:os'
import type { Cpu } from './cpu.js'
import type { Target } from './target.js'

/** What one run cost. */
export interface Cost {
  readonly seconds: number
  readonly cpu: Cpu
}

/** Runs it, by the clock and by the CPU time of the server. */
export async function measure(target: Target, run: () => Promise<void>): Promise<Cost> {
  const before = await target.cpu()
  const started = performance.now()
  await run()
  const seconds = (performance.now() - started) / 1000
  const after = await target.cpu()
  return { seconds, cpu: { process: after.process - before.process, main: after.main - before.main } }
}

/** Costs of the same work by both ways, one of each per round. */
export interface Pair {
  readonly proxy: Cost[]
  readonly direct: Cost[]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/**
 * Two lines: what both ways reach by the clock with the median of the ratios round by round, and what they cost the
 * server in CPU time. On a machine that others work on, only the second says something.
 * @param done amount of work of one run, in `unit`
 */
export function report(what: string, unit: string, pair: Pair, done: (cost: Cost) => number, per: number): void {
  const rate = (cost: Cost) => done(cost) / cost.seconds
  const ratios = pair.proxy.map((cost, i) => rate(cost) / rate(pair.direct[i] as Cost))
  const cpu = (costs: readonly Cost[], of: (cost: Cost) => number) =>
    median(costs.map((cost) => (of(cost) / done(cost)) * per)).toFixed(2)
  const rates = [pair.proxy, pair.direct].map((costs) => median(costs.map(rate)).toFixed(0).padStart(7))
  console.log(
    `${what.padEnd(24)} proxy ${rates[0]} ${unit}/s   direct ${rates[1]} ${unit}/s   ratio ${median(ratios).toFixed(2)}`,
  )
  console.log(
    `${''.padEnd(24)} CPU s per ${per} ${unit}: proxy ${cpu(pair.proxy, (c) => c.cpu.process)} (its own thread ${cpu(pair.proxy, (c) => c.cpu.main)})   direct ${cpu(pair.direct, (c) => c.cpu.process)}   load ${loadavg()[0]?.toFixed(1)}`,
  )
}
