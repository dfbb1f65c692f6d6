import type { ListedProvider } from 'dealgate/paid'
import { type PluginServices, repeatable } from 'dealgate/plugin'
import type { TaskDeps } from './deps.js'
import { listOf, provider } from './documents.js'
import { platform } from './platform.js'

/** How long a list is used, ms. */
const FRESH_MS = 30_000
const PAGE = 100
const MAX_PROVIDERS = 10_000

const listed = listOf(provider.read, 'miner', 'miners')

/** What this plugin offers others: the providers of the platform, and the memory of the tasks of buckets. */
export function offersOf(deps: TaskDeps): PluginServices {
  let known: { readonly list: Promise<readonly ListedProvider[]>; readonly until: number } | undefined
  return {
    providers: {
      list() {
        const now = deps.host.now()
        if (known && now < known.until) return known.list
        const list = allProviders(deps).catch((error) => {
          if (known?.list === list) known = undefined
          throw repeatable(error)
        })
        known = { list, until: now + FRESH_MS }
        return list
      },
    },
    tasks: {
      remember: ({ uuid, ...task }) =>
        deps.made.remember({ ...task, ...(uuid !== '' && { uuid }), made: deps.host.now() }),
    },
  }
}

async function allProviders(deps: TaskDeps): Promise<readonly ListedProvider[]> {
  const found = new Map<string, ListedProvider>()
  for (let offset = 0; offset < MAX_PROVIDERS; offset += PAGE) {
    const query = { limit: PAGE, offset: deps.options.offsets === 'pages' ? offset / PAGE : offset }
    const page = platform.dataOf(await deps.client.send({ method: 'GET', path: ['miners'], query }), listed)
    const before = found.size
    for (const one of page) found.set(one.MinerId, one)
    // A platform that ignores the page repeats it.
    if (page.length < PAGE || found.size === before) break
  }
  return [...found.values()]
}
