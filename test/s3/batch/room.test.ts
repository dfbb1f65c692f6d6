import t from 'tap'
import type { RunningJob } from '../../../src/api/context.js'
import { Retry } from '../../../src/plugins/jobs/live-job.js'
import type { BatchOrder } from '../../../src/s3/batch/order.js'
import { NEW_RECORD } from '../../../src/s3/batch/records.js'
import { type BatchDeps, batchJobs, Live, MOST_OPEN_OF_ONE } from '../../../src/s3/batch/run.js'

t.test('a key pair whose jobs are many leaves room to others', async (t) => {
  const live = new Live()
  const ends = Array.from({ length: MOST_OPEN_OF_ONE }, (_, at) => live.begin(`j-${at}`, 'busy', NEW_RECORD))
  const records = { run: async () => ({ id: 'j', get: async () => NEW_RECORD, change: reached }) }
  async function reached(): Promise<never> {
    throw new Retry(0, 'reached')
  }
  const run = (accessKeyId: string) => {
    const job = { job: { id: 'j', accessKeyId }, input: { operation: { name: 'Delete' } } }
    const deps = { live, records } as unknown as BatchDeps
    return batchJobs(() => deps).run({
      ...job,
      signal: new AbortController().signal,
    } as unknown as RunningJob<BatchOrder>)
  }
  await t.rejects(run('busy'), { message: 'Ready', afterMs: 30_000 })
  await t.rejects(run('other'), { message: 'reached' })
  ends[0]?.()
  await t.rejects(run('busy'), { message: 'reached' })
})
