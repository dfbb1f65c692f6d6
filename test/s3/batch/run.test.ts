import t from 'tap'
import type { RunningJob } from '../../../src/api/context.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { Retry } from '../../../src/plugins/jobs/live-job.js'
import type { BatchOrder } from '../../../src/s3/batch/order.js'
import { type BatchRecord, NEW_RECORD } from '../../../src/s3/batch/records.js'
import { type BatchDeps, batchJobs, Live, MOST_OPEN_OF_ONE } from '../../../src/s3/batch/run.js'

/**
 * Runs a job without rows.
 * @param records what clients have made of its record, by the looks that the run takes at it
 */
function run(
  records: readonly Partial<BatchRecord>[],
  accessKeyId = 'a',
  live = new Live(),
  order: object = {},
  clear = async () => {},
) {
  let record: BatchRecord = { ...NEW_RECORD, prepared: true }
  let looks = 0
  const look = async () => {
    record = { ...record, ...records[Math.min(looks++, records.length - 1)] }
    return record
  }
  const run = {
    ...{ id: 'j', get: async () => ({ ...record, ...records[0] }) },
    change: async (to: (record: BatchRecord) => BatchRecord) => {
      record = to(await look())
      return record
    },
  }
  // The only members that a run without rows has use for.
  const deps = { live, records: { run: async () => run, clear }, now: () => 1 } as unknown as BatchDeps
  const job = {
    ...{ job: { id: 'j', accessKeyId }, input: { operation: { name: 'Archive', storageClass: 'GLACIER' }, ...order } },
    ...{ signal: new AbortController().signal, owned: () => true, report: () => {} },
  }
  return batchJobs(() => deps).run(job as unknown as RunningJob<BatchOrder>)
}

t.test('a key pair whose jobs are many leaves room to others', async (t) => {
  const live = new Live()
  const ends = Array.from({ length: MOST_OPEN_OF_ONE }, (_, at) => live.begin(`j-${at}`, 'busy', NEW_RECORD))
  await t.rejects(run([{}], 'busy', live), new Retry(30_000, 'Ready'))
  await t.resolves(run([{}], 'other', live))
  ends[0]?.()
  await t.resolves(run([{}], 'busy', live))
})

t.test('what a client asks while tasks end is not lost', async (t) => {
  await t.rejects(run([{ asked: 'pause' }]), { message: 'Paused', afterMs: 60_000 })
  // Of a job that was asked to go on again.
  await t.rejects(run([{ asked: 'pause' }, { asked: undefined } as object]), { message: 'Ready', afterMs: 0 })
  const order = { confirmationRequired: true }
  await t.rejects(run([{}], 'a', new Live(), order), { message: 'Suspended', afterMs: 60_000 })
  await t.resolves(run([{}, { confirmed: true }], 'a', new Live(), order))
})

t.test('a job that is cancelled while its records cannot be written tries again', async (t) => {
  const away = async () => {
    throw new S3Error('ServiceUnavailable')
  }
  await t.rejects(run([{ asked: 'cancel' }], 'a', new Live(), {}, away), { message: 'WaitingForGateway' })
})
