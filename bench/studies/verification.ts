import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { inTurn, ok } from './large.js'
import { type Cost, measure, median } from './measure.js'
import type { Target } from './target.js'
import { download, upload } from './wire.js'

const GIB = 1024 ** 3

/**
 * What it costs to compare each chunk with its checksum: GET of an object whose checksums are kept, and of one of which
 * they were removed, which is served as those of earlier versions. Both in turn, by the proxy and at the gateway.
 */
export async function verification(target: Target, rounds: number, size: number): Promise<void> {
  for (const key of ['compared', 'uncompared']) {
    const { path, headers } = await target.direct('PUT', key)
    await ok(upload(target.gateway, path, headers, size))
  }
  removeSums(target, 'uncompared')
  const ways = {
    proxy: (key: string) => measure(target, () => ok(download(target.proxy, target.s3('GET', key), {}, size))),
    direct: async (key: string) => {
      const { path, headers } = await target.direct('GET', key)
      return measure(target, () => ok(download(target.gateway, path, headers, size)))
    },
  }
  for (const [way, get] of Object.entries(ways)) {
    const costs: Record<'compared' | 'uncompared', Cost[]> = { compared: [], uncompared: [] }
    // The first round compiles the code.
    for (let round = 0; round <= rounds; round++)
      await inTurn(round, [
        async () => void costs.compared.push(await get('compared')),
        async () => void costs.uncompared.push(await get('uncompared')),
      ])
    const perGib = ({ cpu }: Cost) => (cpu.process * GIB) / size
    const [compared, uncompared] = [costs.compared.slice(1).map(perGib), costs.uncompared.slice(1).map(perGib)]
    const ratio = median(compared.map((cost, n) => cost / (uncompared[n] as number)))
    const told = [compared, uncompared].map((all) => median(all).toFixed(2))
    console.log(`GET ${way}: CPU s per GiB ${told[0]} compared, ${told[1]} not, ratio ${ratio.toFixed(3)}`)
  }
}

function removeSums({ data }: Target, key: string): void {
  const db = new DatabaseSync(join(data, 'services', 'gateway', 'index.db'))
  db.exec('PRAGMA busy_timeout = 10000')
  const { changes } = db
    .prepare('DELETE FROM body_sums WHERE generation = (SELECT generation FROM objects WHERE key = ?)')
    .run(Buffer.from(key))
  db.close()
  if (changes === 0) throw new Error('The object had no checksums.')
}
