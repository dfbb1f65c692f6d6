import { withinDeadline } from '../common/deadline.js'
import type { Logger } from '../log.js'
import { messageOf } from './blame.js'
import type { Plugin, PluginHost } from './plugin.js'
import { PluginError } from './plugin-error.js'

/** How long each may take, ms. */
export interface LifeTimes {
  readonly startMs: number
  readonly stopMs: number
}

const standard: LifeTimes = { startMs: 30_000, stopMs: 30_000 }

/** Ends what was started, in the opposite order. Never rejects: what fails or takes too long is logged. */
export type StopPlugins = () => Promise<void>

/** Starts one plugin after the other. Throws PluginError when one fails or takes too long; those before it have been stopped then, and so has it. */
export async function startPlugins(
  plugins: readonly Plugin[],
  host: Omit<PluginHost, 'log'>,
  log: Logger,
  times: LifeTimes = standard,
): Promise<StopPlugins> {
  const begun: Plugin[] = []
  const stop = async () => {
    for (let plugin = begun.pop(); plugin; plugin = begun.pop()) await stopPlugin(plugin, log, times.stopMs)
  }
  for (const plugin of plugins) {
    begun.push(plugin)
    try {
      await withinDeadline(
        (async () => plugin.start?.({ ...host, log: log.child({ plugin: plugin.name }) }))(),
        times.startMs,
      )
    } catch (cause) {
      await stop()
      throw new PluginError([`the plugin "${plugin.name}" failed to start: ${messageOf(cause)}`], { cause })
    }
  }
  return stop
}

async function stopPlugin(plugin: Plugin, log: Logger, stopMs: number): Promise<void> {
  try {
    await withinDeadline((async () => plugin.stop?.())(), stopMs)
  } catch (err) {
    log.error({ err, plugin: plugin.name }, 'a plugin failed to stop')
  }
}
