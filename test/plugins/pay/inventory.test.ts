import type { PluginHost } from 'dealgate/plugin'
import t from 'tap'
import { payInventory } from '../../../plugins/pay/inventory.js'
import { MadeUploads } from '../../../plugins/pay/upload/made-uploads.js'
import type { StoredObject } from '../../../src/api/store.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { keptLog } from '../../support/server/kept-log.js'

t.test('x-PayState is that of the newest upload of the object as it is now', async (t) => {
  const state = await openState({ data: temporaryFolder(t), log: keptLog().log })
  t.teardown(() => state.close())
  const made = new MadeUploads({ state })
  const remember = (jobId: string, key: string, revision: string, more: object = {}) =>
    made.remember({
      ...{ jobId, uploadId: Number(jobId), cid: 'c', wCid: 'w', url: 'u', name: key, size: 1, days: 180 },
      ...{ fileType: '0', accessKeyId: 'a', made: 1, bucket: 'photos', key, revision, birth: 'then' },
      ...more,
    })
  await remember('1', 'k', 'old', { status: 'Pending' })
  await remember('2', 'k', 'now', { status: 'Pending' })
  await remember('3', 'k', 'now', { status: 'Paid' })
  await remember('4', 'unnamed', 'now')
  await remember('5', 'replaced', 'old', { status: 'Paid' })
  await remember('6', 'earlier bucket', 'now', { status: 'Paid', birth: 'before' })
  const host = { own: { creationTimes: { now: async () => 'then' } } } as unknown as PluginHost
  const objects = ['k', 'none', 'unnamed', 'replaced', 'earlier bucket'].map((key) => ({
    ...{ bucket: 'photos', key, revision: 'now' },
  })) as unknown as StoredObject[]
  const values = await payInventory({ made }, host).read(objects)
  t.same(
    values.map((value) => value['x-PayState']),
    ['Paid', undefined, 'Unknown', undefined, undefined],
  )
})
