import t from 'tap'
import { RESTORE } from '../../../plugins/deal/archive/restore.js'
import type { Jobs } from '../../../src/api/context.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { ArchiveProxy } from './archive-proxy.js'

type Change = 'release' | 'drop'

/** The next `release` or `drop` of a job cannot be written. */
function failOnce(jobs: Jobs, name: Change): Promise<void> {
  const changing = jobs as { [Name in Change]: (id: string, input?: unknown) => Promise<void> }
  const real = changing[name]
  return new Promise((resolve) => {
    changing[name] = async () => {
      changing[name] = real
      resolve()
      throw new S3Error('ServiceUnavailable')
    }
  })
}

t.test('a job that could not be let begin begins all the same, without a restart', async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  const { jobs } = proxy.host.own
  const stored = failOnce(jobs, 'release')
  await proxy.put('a')
  await stored
  t.match(await proxy.ended('a'), { status: 'Complete' })
  await proxy.untilCold('a')

  const restored = failOnce(jobs, 'release')
  t.equal(await proxy.restore('a', { Days: 1 }), 202)
  await restored
  t.match(await proxy.ended('a', RESTORE), { status: 'Complete' })
  await proxy.untilHead('it is back', 'a', ({ Restore }) => Restore?.includes('expiry-date') ?? false)

  const dropped = failOnce(jobs, 'drop')
  await t.rejects(proxy.put('b', { Body: 'other', ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==' }), { name: 'BadDigest' })
  await dropped
  const [held] = await proxy.jobs('b')
  if (held) t.match(await jobs.wait(held.id, 60_000).catch((error) => error), { code: 'NoSuchJob' })
})
