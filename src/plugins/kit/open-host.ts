import type { Logger } from '../../common/log.js'
import { acquireTaskLease } from '../../state/locks/task-lease.js'
import type { PluginHost } from '../forms/plugin.js'
import { type PeriodicWork, Schedule } from './schedule.js'

/** What all plugins of a server have in common. */
export type SharedHost = Omit<PluginHost, 'log' | 'lease' | 'schedule'>

export interface OpenHost {
  readonly host: PluginHost
  /** Ends periodic work: runs that are under way get their signal and are awaited. */
  stop(): Promise<void>
}

/** The host of one plugin. Lease names begin with the plugin's name, so that plugins do not share one by accident. */
export function openHost(plugin: string, shared: SharedHost, log: Logger): OpenHost {
  const schedules: Schedule[] = []
  let stopped = false
  const lease = (name: string) => acquireTaskLease(shared.state, `${plugin}-${name}`, log)
  return {
    host: {
      ...shared,
      log,
      lease,
      schedule(work: PeriodicWork) {
        // A start that took too long goes on after the server has given it up.
        if (stopped) throw new Error(`${plugin} schedules ${work.name} after it was stopped`)
        schedules.push(new Schedule(work, lease, log))
      },
    },
    async stop() {
      stopped = true
      await Promise.all(schedules.map((schedule) => schedule.stop()))
    },
  }
}
