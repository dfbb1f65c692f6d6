import t from 'tap'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, terms } from './archive-proxy.js'

const FIELDS = [
  ...['StorageClass', 'x-Cid', 'x-PieceCid', 'x-DealState', 'x-DealCount', 'x-Providers', 'x-DealEndEpoch'],
  ...['x-DealEnd', 'x-TaskUuid', 'x-BytesAt'],
] as readonly string[]

t.test('an inventory says which deals hold an object, until when, and where its bytes are', async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  await proxy.put('plain', { StorageClass: 'STANDARD' })
  await proxy.put('archived')
  await proxy.configureInventory('Current', FIELDS)
  const rows = async () => Object.fromEntries((await proxy.inventory()).map((row) => [row.Key, row]))
  await proxy.untilCold('archived')
  const { plain, archived } = await until('the deal is active', async () => {
    const found = await rows()
    return found.archived?.['x-DealEnd'] !== '' && found
  })
  const head = await proxy.head('archived')
  t.match(archived, {
    StorageClass: 'GLACIER',
    'x-Cid': head.Metadata?.cid,
    'x-PieceCid': /^baga/,
    'x-DealState': 'StorageDealActive',
    'x-DealCount': '1',
    'x-Providers': terms.minerId,
    'x-DealEndEpoch': /^\d+$/,
    'x-DealEnd': new RegExp(`^${head.Metadata?.['deal-expiry']?.slice(0, 16)}`),
    'x-TaskUuid': '',
    'x-BytesAt': 'provider',
  })
  t.match(plain, {
    ...{ StorageClass: 'STANDARD', 'x-Cid': '', 'x-PieceCid': '', 'x-DealState': '', 'x-DealCount': '0' },
    ...{ 'x-Providers': '', 'x-DealEnd': '', 'x-BytesAt': 'gateway' },
  })

  // Deals hold the bytes of a version: those of an object that has replaced it are others.
  await proxy.put('archived', { StorageClass: 'STANDARD', Body: 'other bytes' })
  t.match((await rows()).archived, { 'x-DealCount': '0', 'x-Cid': '', 'x-BytesAt': 'gateway' })
})
