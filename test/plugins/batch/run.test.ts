import t from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { Live } from '../../../plugins/batch/live.js'
import type { BatchOrder, Row } from '../../../plugins/batch/order.js'
import { CHECKPOINT } from '../../../plugins/batch/prepare.js'
import { type BatchRecord, NEW_RECORD } from '../../../plugins/batch/records.js'
import { type BatchDeps, batchJobs, MAX_OPEN_OF_ONE } from '../../../plugins/batch/run.js'
import { Turns } from '../../../plugins/batch/turns.js'
import type { RunningJob } from '../../../src/api/context.js'
import { Retry } from '../../../src/plugins/jobs/live-job.js'
import { Pace } from '../../../src/plugins/parts/pace.js'

interface Scene {
  readonly owner?: string
  readonly live?: Live
  readonly order?: object
  readonly clear?: (id: string, chunks: number) => Promise<void>
  readonly rows?: readonly Row[]
  readonly perform?: () => Promise<object>
  readonly turns?: Turns
}

const oneTurn = () => new Turns({ most: 1, mostLong: 0 })

/** Takes a turn of another key pair, and keeps it. */
function keepTurn(turns: Turns): void {
  const { signal } = new AbortController()
  void turns.enter({ owner: 'other', priority: () => 0, signal, onWait: () => {} })
}

/**
 * Runs a job.
 * @param records what clients have made of its record, by the looks that the run takes at it
 */
function run(records: readonly Partial<BatchRecord>[], scene: Scene = {}) {
  const { owner = 'a', live = new Live(), order = {}, clear = async () => {}, rows = [], perform } = scene
  const { turns = oneTurn() } = scene
  const listing = { chunks: Math.sign(rows.length), rows: rows.length }
  let record: BatchRecord = { ...NEW_RECORD, prepared: true, listing }
  let chunk: object = { rows }
  let looks = 0
  const run = {
    ...{ id: 'j', get: async () => ({ ...record, ...records[0] }), chunk: async () => chunk },
    put: async (_: number, put: object) => {
      chunk = put
    },
    change: async (to: (record: BatchRecord) => BatchRecord) => {
      record = to({ ...record, ...records[Math.min(looks++, records.length - 1)] })
      return record
    },
  }
  const jobs = {
    cancel: async () => {
      throw new Error('Cancelled')
    },
  }
  // The only members that these runs have use for.
  const deps = {
    ...{ live, records: { run: async () => run, clear }, now: () => 1, jobs, perform },
    ...{ turns, pace: new Pace(100) },
  } as unknown as BatchDeps
  const job = {
    ...{ job: { id: 'j', accessKeyId: owner } },
    context: { plugins: { storageClasses: new Map([['GLACIER', {}]]) }, callerJobs: { session: () => undefined } },
    ...{ input: { operation: { name: 'Archive', storageClass: 'GLACIER' }, ...order } },
    ...{ signal: new AbortController().signal, owned: () => true, report: () => {} },
  }
  return batchJobs(() => deps).run(job as unknown as RunningJob<BatchOrder>)
}

t.test('a key pair whose jobs are many leaves room to others', async (t) => {
  const live = new Live()
  const ends = Array.from({ length: MAX_OPEN_OF_ONE }, (_, at) => live.begin(`j-${at}`, 'busy', NEW_RECORD))
  await t.rejects(run([{}], { owner: 'busy', live }), new Retry(30_000, 'Ready'))
  await t.resolves(run([{}], { owner: 'other', live }))
  ends[0]?.()
  await t.resolves(run([{}], { owner: 'busy', live }))
})

t.test('what a client asks while tasks end is not lost', async (t) => {
  await t.rejects(run([{ asked: 'pause' }]), { message: 'Paused', afterMs: 60_000 })
  // Of a job that was asked to go on again.
  await t.rejects(run([{ asked: 'pause' }, { asked: undefined } as object]), { message: 'Ready', afterMs: 0 })
  const order = { confirmationRequired: true }
  await t.rejects(run([{}], { order }), { message: 'Suspended', afterMs: 60_000 })
  await t.resolves(run([{}, { confirmed: true }], { order }))
})

t.test('a job that is cancelled while its records cannot be written tries again', async (t) => {
  const clear = async () => {
    throw new S3Error('ServiceUnavailable')
  }
  await t.rejects(run([{ asked: 'cancel' }], { clear }), { message: 'WaitingForGateway' })
})

t.test('a cancel that another server has taken ends a job that spends before its next task', async (t) => {
  let asked = 0
  const perform = async () => {
    asked++
    return { status: 200, headers: {} }
  }
  const rows: Row[] = ['a', 'b', 'c'].map((key) => ['things', key])
  await t.rejects(run([{}, {}, { asked: 'cancel' }], { rows, perform }), { message: 'Cancelled' })
  t.equal(asked, 1)
})

t.test('a job that is stopped or put off ends while its tasks wait for turns that others keep', async (t) => {
  const rows: Row[] = ['a', 'b', 'c'].map((key) => ['things', key])
  const turns = oneTurn()
  const perform = async () => {
    // It has its turn after this task, and before the others.
    keepTurn(turns)
    throw new S3Error('SpendCapReached')
  }
  await t.rejects(run([{}], { rows, turns, perform }), { message: 'WaitingForBudget' })
  // The turn is kept; the next look comes at once.
  t.intercept(globalThis, 'setInterval', { value: (look: () => void) => setImmediate(look) })
  await t.rejects(run([{}, { asked: 'cancel' }], { rows, turns }), { message: 'Cancelled' })
})

t.test('a job that ends while its rows are listed leaves none behind its last checkpoint', async (t) => {
  let cleared = 0
  const clear = async (_: string, chunks: number) => {
    cleared = chunks
  }
  await t.rejects(run([{ asked: 'cancel', prepared: false }], { clear }), { message: 'Cancelled' })
  t.equal(cleared, CHECKPOINT)
})
