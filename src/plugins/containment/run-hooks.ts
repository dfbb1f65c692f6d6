import type { Logger } from '../../common/log.js'
import type { Hooks, ObjectEvent, PluginHooks } from '../forms/hooks.js'
import type { Plugin } from '../forms/plugin.js'
import { Deadlines } from './deadlines.js'

/**
 * Combines the hooks of all plugins into one set that never rejects. Each call of a hook may take `deadlineMs`.
 * @param plugins asked at each event
 */
export function combineHooks(plugins: () => readonly Plugin[], log: Logger, deadlineMs: number): Hooks {
  const deadlines = new Deadlines(deadlineMs)
  const run = (name: keyof PluginHooks) => async (event: ObjectEvent) => {
    for (const plugin of plugins()) {
      const hook = plugin.hooks?.[name]
      if (!hook) continue
      try {
        await deadlines.within(hook.call(plugin.hooks, event))
      } catch (err) {
        const { bucket, origin } = event
        log.error({ err, requestId: origin.requestId, plugin: plugin.name, hook: name, bucket }, 'a hook failed')
      }
    }
  }
  return {
    objectStored: run('objectStored'),
    objectDeleted: run('objectDeleted'),
    objectTagged: run('objectTagged'),
    objectMoved: run('objectMoved'),
  }
}
