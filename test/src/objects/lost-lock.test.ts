import t from 'tap'
import { createLogger } from '../../../common/log.js'
import type { HeldLock } from '../../../src/api/locks.js'
import type { ObjectRecord } from '../../../src/api/object-records.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { startInProcess } from '../../support/server/in-process.js'
import { lostLock } from '../state/samples.js'

t.test('a version keeps its metadata and tags though its writer has lost the lock', async (t) => {
  const own = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
  t.teardown(() => own.close())
  let loses = false
  const objects = new Proxy(own.objects, {
    get(target, name: keyof typeof own.objects) {
      if (name !== 'setNewest') return target[name].bind(target)
      return (record: ObjectRecord, lock: HeldLock) => target.setNewest(record, loses ? lostLock(lock) : lock)
    },
  })
  const { s3 } = await startInProcess(t, 'full', { state: { ...own, objects } })
  const place = { Bucket: 'bucket', Key: 'k' }
  await s3.createBucket({ Bucket: place.Bucket })
  await s3.putBucketVersioning({ Bucket: place.Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  await s3.putObject({ ...place, Body: 'before', Tagging: 'of=before' })
  loses = true
  const { VersionId } = await s3.putObject({ ...place, Body: 'of the loser', Tagging: 'of=loser' })
  loses = false
  t.match((await s3.getObjectTagging(place)).TagSet, [{ Value: 'loser' }])
  await s3.putObject({ ...place, Body: 'later', Tagging: 'of=later' })
  t.match((await s3.getObjectTagging({ ...place, VersionId })).TagSet, [{ Value: 'loser' }])
  t.match((await s3.getObjectTagging(place)).TagSet, [{ Value: 'later' }])
})
