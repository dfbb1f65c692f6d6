import type { Logger } from '../log.js'
import type { Hooks, ObjectEvent, PluginHooks } from './hooks.js'
import type { Plugin } from './plugin.js'

/** One call of one hook may take this long, ms. */
const DEADLINE_MS = 10_000

/** All plugins' hooks as one that never rejects. */
export function combineHooks(plugins: readonly Plugin[], log: Logger): Hooks {
  const run = (name: keyof PluginHooks) => async (event: ObjectEvent) => {
    for (const plugin of plugins) {
      const hook = plugin.hooks?.[name]
      if (!hook) continue
      try {
        await withinDeadline(hook.call(plugin.hooks, event))
      } catch (err) {
        log.error({ err, plugin: plugin.name, hook: name, bucket: event.bucket }, 'a hook failed')
      }
    }
  }
  return { objectStored: run('objectStored'), objectDeleted: run('objectDeleted'), objectTagged: run('objectTagged') }
}

async function withinDeadline(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${DEADLINE_MS} ms`)), DEADLINE_MS)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
