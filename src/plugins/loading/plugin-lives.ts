import { withinDeadline } from '../../common/deadline.js'
import type { Logger } from '../../common/log.js'
import { messageOf } from '../containment/blame.js'
import type { Plugin } from '../forms/plugin.js'
import { PluginError } from '../forms/plugin-error.js'
import { ATTACH } from '../kit/late-host.js'
import { type OpenHost, openHost, type SharedHost } from '../kit/open-host.js'

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
    const open = openHost(plugin.name, shared, log.child({ plugin: plugin.name }))
    begun.push({ plugin, open })
    try {
      await withinDeadline((async () => start(plugin, open))(), times.startMs)
    } catch (cause) {
      await stop()
      throw new PluginError([`the plugin "${plugin.name}" failed to start: ${messageOf(cause)}`], { cause })
    }
  }
  return stop
}

interface Begun {
  readonly plugin: Plugin
  readonly open: OpenHost
}

async function start(plugin: Plugin, { host }: OpenHost): Promise<void> {
  plugin[ATTACH]?.(host)
  await plugin.start?.(host)
}

async function stopPlugin({ plugin, open }: Begun, log: Logger, stopMs: number): Promise<void> {
  try {
    await withinDeadline(open.stop(), stopMs)
  } catch (err) {
    log.error({ err, plugin: plugin.name }, 'periodic work of a plugin failed to end')
  }
  try {
    await withinDeadline((async () => plugin.stop?.())(), stopMs)
  } catch (err) {
    log.error({ err, plugin: plugin.name }, 'a plugin failed to stop')
  }
}
