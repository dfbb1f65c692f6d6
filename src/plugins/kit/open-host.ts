import type { Logger } from '../../common/log.js'
import { acquireTaskLease } from '../../state/locks/task-lease.js'
import type { PluginHost } from '../forms/plugin.js'
import { checkPeriod, type PeriodicWork, Schedule } from './schedule.js'

/** What all plugins of a server have in common. */
export type SharedHost = Omit<PluginHost, 'log' | 'lease' | 'schedule'>

export interface OpenHost {
  readonly host: PluginHost
  /** Begins the periodic work of a host that was opened with `held`. */
  release(): void
  /** Ends periodic work: runs that are under way get their signal and are awaited. */
  stop(): Promise<void>
}

/**
 * The host of one plugin. Lease names begin with the plugin's name, so that plugins do not share one by accident.
 * @param held periodic work waits for `release`
 */
export function openHost(plugin: string, shared: SharedHost, log: Logger, held = false): OpenHost {
  const schedules: Schedule[] = []
  const waiting: PeriodicWork[] = []
  let stopped = false
  let waits = held
  const lease = (name: string) => acquireTaskLease(shared.state, `${plugin}-${name}`, log)
  return {
    host: {
      ...shared,
      log,
      lease,
      schedule(work: PeriodicWork) {
        // A start that took too long goes on after the server has given it up.
        if (stopped) throw new Error(`${plugin} schedules ${work.name} after it was stopped`)
        checkPeriod(work)
        if (waits) waiting.push(work)
        else schedules.push(new Schedule(work, lease, log))
      },
    },
    release() {
      waits = false
      for (const work of stopped ? [] : waiting.splice(0)) schedules.push(new Schedule(work, lease, log))
    },
    async stop() {
      stopped = true
      await Promise.all(schedules.map((schedule) => schedule.stop()))
    },
  }
}
