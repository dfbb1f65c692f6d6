import type { Logger } from '../../common/log.js'
import type { PeriodicWork, PluginHost } from '../api/plugin.js'
import type { Records, Signals } from '../api/state.js'
import { acquireTaskLease } from '../state/locks/task-lease.js'
import { Schedule } from './schedule.js'

export type SharedHost = Omit<PluginHost, 'log' | 'lease' | 'schedule' | 'signals'> & { readonly board: Signals }

export interface OpenHost {
  readonly host: PluginHost
  /** Ends periodic work: runs that are under way get their signal and are awaited. */
  stop(): Promise<void>
}

/** The host of one plugin. Names of leases begin with that of the plugin, so that no two share one by accident. */
export function openHost(plugin: string, { board, ...shared }: SharedHost, log: Logger): OpenHost {
  const schedules: Schedule[] = []
  let stopped = false
  const lease = (name?: string) =>
    acquireTaskLease(shared.state, name === undefined ? plugin : `${plugin}-${name}`, log)
  return {
    host: {
      ...shared,
      log,
      lease,
      signals: {
        send: (text) => board.send(`plugin-${plugin}`, text),
        on: (heard) => board.on(`plugin-${plugin}`, heard),
      },
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

/** In the registry that all copies of this package share: a plugin may bring its own. */
export const ATTACH: unique symbol = Symbol.for('dealgate.plugin.attach')

interface LateHost {
  readonly host: PluginHost
  /** To be called before the plugin starts: from now on `host` works as this one does. */
  attach(host: PluginHost): void
}

/**
 * The host that `create` gets. A plugin is created before its server, so that the server can check its declarations:
 * until the server attaches the real host, every use throws an Error. A plugin can open a store of records earlier;
 * only the methods of the store need the server.
 */
export function lateHost(plugin: string): LateHost {
  let attached: PluginHost | undefined
  const started = (member: string): PluginHost => {
    if (attached) return attached
    throw new Error(
      `the plugin "${plugin}" uses host.${member} before the server has started it: use it in start(), or in what runs later`,
    )
  }
  const host: PluginHost = {
    get log() {
      return started('log').log
    },
    state: {
      get shared() {
        return started('state').state.shared
      },
      records: <T>(name: string) => lateRecords<T>(() => started('state'), name),
      acceptedLoss: async () => started('state').state.acceptedLoss(),
      locks: {
        withKey: (...args) => started('state').state.locks.withKey(...args),
        withSubtree: (...args) => started('state').state.locks.withSubtree(...args),
        withName: (...args) => started('state').state.locks.withName(...args),
      },
    },
    get settings() {
      return started('settings').settings
    },
    get own() {
      return started('own').own
    },
    get platformUrl() {
      return started('platformUrl').platformUrl
    },
    get paymentUrl() {
      return started('paymentUrl').paymentUrl
    },
    get offered() {
      return started('offered').offered
    },
    sealer: {
      seal: async (...args) => started('sealer').sealer.seal(...args),
      open: async (...args) => started('sealer').sealer.open(...args),
    },
    perform: async (...args) => started('perform').perform(...args),
    decide: async (...args) => started('decide').decide(...args),
    get signals() {
      return started('signals').signals
    },
    operations: () => started('operations').operations(),
    storage: async () => started('storage').storage(),
    now: () => started('now').now(),
    lease: (name) => started('lease').lease(name),
    schedule: (work) => started('schedule').schedule(work),
  }
  return {
    host,
    attach(to) {
      attached = to
    },
  }
}

function lateRecords<T>(started: () => PluginHost, name: string): Records<T> {
  let opened: { readonly host: PluginHost; readonly records: Records<T> } | undefined
  const records = (): Records<T> => {
    const host = started()
    if (opened?.host !== host) opened = { host, records: host.state.records<T>(name) }
    return opened.records
  }
  return {
    get: async (key) => records().get(key),
    getMany: async (keys) => records().getMany(keys),
    set: async (key, value) => records().set(key, value),
    change: async (key, to) => records().change(key, to),
    delete: async (key) => records().delete(key),
    entries: () => records().entries(),
  }
}
