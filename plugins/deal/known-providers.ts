import type { ProviderDocument } from 'dealgate/paid'
import { type Context, parseAmount, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import { DealClient } from './deal-client.js'
import { visibility } from './deal-entries.js'
import type { DealDeps } from './deps.js'
import { isFinal, statesOf } from './records/deal-record.js'

/**
 * The storage providers: the gateway's list, or that of another plugin where the gateway has none. Undefined where
 * there is neither. Throws what DealClient.providers throws.
 */
export async function knownProviders(
  { host }: Pick<DealDeps, 'host'>,
  { gateway, log }: Pick<Context, 'gateway' | 'log'>,
): Promise<readonly ProviderDocument[] | undefined> {
  if ((await gateway.features()).dealProviders) return new DealClient(gateway, log).providers()
  try {
    return await host.offered.providers?.list()
  } catch (err) {
    // Deals do not depend on another service.
    if (!(err instanceof S3Error)) throw err
    log.warn({ err }, 'the list of storage providers of another service could not be read')
    return undefined
  }
}

/** Newest deals of which providers are judged. */
const JUDGED = 2000

export const experience = z.object({
  Deals: z.int(),
  Active: z.int().describe('Of them, those that have become active.'),
  Failed: z.int().describe('Those that ended before they were active, or were slashed, also after they were active.'),
  SecondsToActive: z.int().optional().describe('From the deal to its first report as active, the median.'),
})

/** What became of the newest deals of this server that the caller may see, by provider. */
export async function experienceOf(
  { deals }: Pick<DealDeps, 'deals'>,
  context: Context,
): Promise<ReadonlyMap<string, z.output<typeof experience>>> {
  const maySee = visibility(context)
  const found = new Map<string, { count: number; failed: number; waits: number[] }>()
  let read = 0
  for await (const [, record] of deals.newestFirst()) {
    if (++read > JUDGED) break
    if (!(await maySee(record))) continue
    const of = found.get(record.deal.minerId) ?? { count: 0, failed: 0, waits: [] }
    found.set(record.deal.minerId, of)
    of.count++
    const active = statesOf(record).find(({ state }) => state === 'StorageDealActive')
    const state = record.live?.state
    if (active) of.waits.push(Math.max(0, active.since - record.made))
    if (state === 'StorageDealSlashed' || (isFinal(state) && !active)) of.failed++
  }
  return new Map([...found].map(([minerId, of]) => [minerId, judged(of)]))
}

function judged({ count, failed, waits }: { count: number; failed: number; waits: number[] }) {
  const median = waits.sort((one, other) => one - other)[Math.floor(waits.length / 2)]
  return {
    ...{ Deals: count, Active: waits.length, Failed: failed },
    ...(median !== undefined && { SecondsToActive: Math.round(median / 1000) }),
  }
}

/** Attofil per GiB and epoch; undefined when the provider gives no price. */
export function askOf(provider: ProviderDocument, verified: boolean): bigint | undefined {
  return parseAmount(verified ? provider.VerifiedPrice : provider.Price)
}

/**
 * The reason why the provider does not take a piece of this size (bytes), in a sentence; undefined when it does, as far
 * as is known.
 */
export function whyUnfit(provider: ProviderDocument, pieceSize: number): string | undefined {
  const { MinerId: id, Status: status } = provider
  if (status !== '' && status.toLowerCase() !== 'active') return `${id} is ${status}.`
  const smallest = readSize(provider.MinPieceSize) ?? 0
  const largest = readSize(provider.MaxPieceSize) ?? Number.POSITIVE_INFINITY
  if (pieceSize < smallest) return `${id} takes pieces of ${smallest} bytes or more; this one has about ${pieceSize}.`
  if (pieceSize > largest) return `${id} takes pieces of at most ${largest} bytes; this one has about ${pieceSize}.`
  return undefined
}

/**
 * To be awaited when one item of a run has failed: throws when the gateway or the records cannot be reached, because
 * the whole run is then better repeated. Otherwise the run continues, so that one broken item does not block the
 * others.
 */
export async function requireHealth({ host, copies }: Pick<DealDeps, 'host' | 'copies'>): Promise<void> {
  await host.own.gateway.ready()
  await copies.get({ bucket: '', key: '', revision: '' })
}

/**
 * Parses a size as providers give it, to bytes: `34359738368`, `32GiB` or `16GB`; all units are powers of two on this
 * network. Undefined for any other text.
 */
function readSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([bkmgtp]?)(?:i?b)?\s*$/i.exec(text) ?? []
  const power = UNITS[unit.toLowerCase()]
  return digits === undefined || power === undefined ? undefined : Number(digits) * 1024 ** power
}

const UNITS: Readonly<Record<string, number>> = { '': 0, b: 0, k: 1, m: 2, g: 3, t: 4, p: 5 }
