import { type ListedProvider, type PluginServices, repeatable } from 'dealgate'
import type { TaskParts } from './parts.js'
import { dataOf, listOf, type WireProvider, wireProvider } from './wire.js'

/** How long a list is used, ms. */
const FRESH_MS = 30_000
const PAGE = 100
const MOST = 10_000

const listed = listOf(wireProvider, 'miner', 'miners')

/** What this plugin offers others: the providers of the platform, and the memory of the tasks of buckets. */
export function offersOf(parts: TaskParts): PluginServices {
  let known: { readonly list: Promise<readonly ListedProvider[]>; readonly until: number } | undefined
  return {
    providers: {
      list() {
        const now = parts.host.now()
        if (known && now < known.until) return known.list
        const list = allProviders(parts).catch((error) => {
          if (known?.list === list) known = undefined
          throw repeatable(error)
        })
        known = { list, until: now + FRESH_MS }
        return list
      },
    },
    tasks: {
      remember: ({ uuid, ...task }) =>
        parts.made.remember({ ...task, ...(uuid !== '' && { uuid }), made: parts.host.now() }),
    },
  }
}

async function allProviders(parts: TaskParts): Promise<readonly ListedProvider[]> {
  const found = new Map<string, ListedProvider>()
  for (let offset = 0; offset < MOST; offset += PAGE) {
    const query = { limit: PAGE, offset: parts.options.offsets === 'pages' ? offset / PAGE : offset }
    const page = dataOf(await parts.client.send({ method: 'GET', path: ['miners'], query }), listed)
    const before = found.size
    for (const provider of page) found.set(provider.miner_id, providerOf(provider))
    // A platform that ignores the page repeats it.
    if (page.length < PAGE || found.size === before) break
  }
  return [...found.values()]
}

function providerOf(provider: WireProvider): ListedProvider {
  return {
    minerId: provider.miner_id,
    location: provider.location,
    price: provider.price,
    verifiedPrice: provider.verified_price,
    minPieceSize: provider.min_piece_size,
    maxPieceSize: provider.max_piece_size,
    offlineDealAvailable: provider.offline_deal_available,
    score: provider.score,
    status: provider.status,
    contactInfo: provider.contact_info,
    updateTime: provider.update_time_str,
  }
}
