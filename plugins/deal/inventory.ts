import type { InventoryFields, InventoryValues, StoredObject } from 'dealgate/plugin'
import { documentOf } from './deal-document.js'
import type { DealDeps } from './deps.js'
import { type DealRecord, holds } from './records/deal-record.js'

/** Columns of inventories about the deals for an object. Deals for a bucket as a whole are not among them. */
export function dealInventory({ deals, options }: Pick<DealDeps, 'deals' | 'options'>): InventoryFields {
  return {
    action: 'deal:ListObjectDeals',
    fields: [
      { name: 'x-Cid', type: 'text', summary: 'CID of the content in the newest deal that holds the object.' },
      { name: 'x-PieceCid', type: 'text', summary: 'CID of the piece of that deal.' },
      { name: 'x-DealState', type: 'text', summary: 'State of that deal, or of the newest one if none holds it.' },
      { name: 'x-DealCount', type: 'integer', summary: 'Deals that hold the object; 0 for none.' },
      { name: 'x-Providers', type: 'text', summary: 'Storage providers of these deals, with commas between them.' },
      { name: 'x-DealEndEpoch', type: 'integer', summary: 'Epoch at which the last of these deals ends.' },
      { name: 'x-DealEnd', type: 'time', summary: 'When the last of these deals ends.' },
      { name: 'x-TaskUuid', type: 'text', summary: 'UUID of the task by which the deal of `x-DealState` was made.' },
    ],
    async read(objects) {
      const found = await deals.ofMany(objects)
      return objects.map((object, i) => valuesOf(ofVersion(found[i] ?? [], object), options.epochSeconds))
    },
  }
}

/** A deal holds the bytes of one version, whose headers may have changed since. */
function ofVersion(deals: readonly DealRecord[], { revision, archive }: StoredObject): readonly DealRecord[] {
  const revisions = [revision, ...(archive?.earlierRevisions ?? [])]
  return deals.filter((deal) => deal.revision !== undefined && revisions.includes(deal.revision))
}

function valuesOf(deals: readonly DealRecord[], epochSeconds: number | undefined): InventoryValues {
  const holding = deals.filter(holds)
  const shown = holding.at(-1) ?? deals.at(-1)
  if (!shown) return { 'x-DealCount': 0 }
  const document = documentOf(shown.deal, shown.live, epochSeconds)
  const ends = holding.map(({ deal, live }) => {
    const { EndEpoch, EstimatedExpiry } = documentOf(deal, live, epochSeconds)
    return { epoch: EndEpoch, time: EstimatedExpiry === undefined ? undefined : Date.parse(EstimatedExpiry) }
  })
  return {
    ...(shown.deal.dataCid && { 'x-Cid': shown.deal.dataCid }),
    'x-PieceCid': document.PieceCid,
    'x-DealState': document.Status,
    'x-DealCount': holding.length,
    ...(holding.length > 0 && { 'x-Providers': [...new Set(holding.map(({ deal }) => deal.minerId))].join(',') }),
    'x-DealEndEpoch': latest(ends.map(({ epoch }) => epoch)),
    'x-DealEnd': latest(ends.map(({ time }) => time)),
    'x-TaskUuid': shown.taskUuid,
  }
}

function latest(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}
