/**
 * Loaded into the Node servers with `--import`: answers each message of the parent with what the process has used.
 * Does not keep the process alive.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

export interface Probed {
  /** Of all threads so far, in user and kernel mode. */
  readonly cpuSeconds: number
  /** Since the last message. */
  readonly loopDelay: LoopDelay
}

/** Delays of the event loop of the main thread beyond the timer of the probe, ms. */
export interface LoopDelay {
  readonly p99: number
  readonly max: number
}

const RESOLUTION_MS = 10

if (isMainThread && process.send) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    const beyond = (ns: number) => Math.max(0, ns / 1e6 - RESOLUTION_MS)
    const loopDelay = { p99: beyond(delays.percentile(99)), max: beyond(delays.max) }
    process.send?.({ cpuSeconds: (user + system) / 1e6, loopDelay } satisfies Probed)
    delays.reset()
  })
  process.channel?.unref()
}
