import type { Plugin } from '../../api/plugin.js'
import type { Logger } from '../../common/log.js'
import { withinDeadline } from '../../common/time.js'
import { messageOf } from '../deadlines.js'
import type { MadePlugin } from '../forms/make-plugin.js'
import { PluginError } from '../forms/plugin-error.js'
import { ATTACH, type OpenHost, openHost, type SharedHost } from '../host/open-host.js'

/** Time limits for one plugin, ms. */
export interface LifeTimes {
  readonly startMs: number
  readonly stopMs: number
}

const standard: LifeTimes = { startMs: 30_000, stopMs: 30_000 }

/** Stops the started plugins in reverse order. Never rejects: errors and timeouts are logged. */
export type StopPlugins = () => Promise<void>

/**
 * Starts one plugin after the other. If one fails or takes too long, stops it and those before it, and throws
 * PluginError.
 */
export async function startPlugins(
  plugins: readonly Plugin[],
  shared: SharedHost,
  log: Logger,
  times: LifeTimes = standard,
): Promise<StopPlugins> {
  const begun: Begun[] = []
  const stop = async () => {
    for (let next = begun.pop(); next; next = begun.pop()) await stopPlugin(next, log, times.stopMs)
  }
  for (const plugin of plugins) {
    try {
      begun.push(await startPlugin(plugin, shared, log, { times }))
    } catch (error) {
      await stop()
      throw error
    }
  }
  return stop
}

/** A plugin that has been started. */
export interface Begun {
  readonly plugin: Plugin
  readonly open: OpenHost
}

/**
 * Starts a plugin. If it fails or takes too long, stops it, and throws PluginError.
 * @param held its periodic work waits until its host is released
 */
export async function startPlugin(
  plugin: Plugin,
  shared: SharedHost,
  log: Logger,
  { held = false, times = standard }: { readonly held?: boolean; readonly times?: LifeTimes } = {},
): Promise<Begun> {
  const open = openHost(plugin.name, shared, log.child({ plugin: plugin.name }), held)
  const begun = { plugin, open }
  try {
    await withinDeadline((async () => start(plugin, open))(), times.startMs)
    return begun
  } catch (cause) {
    await stopPlugin(begun, log, times.stopMs)
    throw new PluginError([`the plugin "${plugin.name}" failed to start: ${messageOf(cause)}`], { cause })
  }
}

async function start(plugin: MadePlugin, { host }: OpenHost): Promise<void> {
  plugin[ATTACH]?.(host)
  await plugin.start?.(host)
}

/** Ends the periodic work of a plugin, then stops it. Never rejects: errors and timeouts are logged. */
export async function stopPlugin(begun: Begun, log: Logger, stopMs = standard.stopMs): Promise<void> {
  const { plugin } = begun
  await endPeriodicWork(begun, log, stopMs)
  try {
    await withinDeadline((async () => plugin.stop?.())(), stopMs)
  } catch (err) {
    log.error({ err, plugin: plugin.name }, 'a plugin failed to stop')
  }
}

/** Never rejects: errors and timeouts are logged. */
export async function endPeriodicWork({ plugin, open }: Begun, log: Logger, stopMs = standard.stopMs): Promise<void> {
  try {
    await withinDeadline(open.stop(), stopMs)
  } catch (err) {
    log.error({ err, plugin: plugin.name }, 'periodic work of a plugin failed to end')
  }
}
