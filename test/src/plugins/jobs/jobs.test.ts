import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { OutcomeUnknown, S3Error } from '../../../../common/errors/s3-error.js'
import type { Context, JobKind, RunningJob } from '../../../../src/api/context.js'
import type { Job, NewJob } from '../../../../src/api/jobs.js'
import type { State } from '../../../../src/api/state.js'
import { Retry } from '../../../../src/plugins/jobs/live-job.js'
import { type JobsOptions, type OwnJobs, openJobs } from '../../../../src/plugins/jobs/open-jobs.js'
import { ulids } from '../../../../src/plugins/jobs/record.js'
import { openState } from '../../../../src/state/open-state.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { keptLog, type LogLine } from '../../../support/server/kept-log.js'
import { until } from '../../../support/waiting.js'

// Jobs only hand the context on.
const contextOf = async ({ accessKeyId }: Pick<Job, 'accessKeyId'>) =>
  accessKeyId === 'gone' ? undefined : ({ caller: accessKeyId } as unknown as Context)

interface Running {
  readonly jobs: OwnJobs
  readonly state: State
  readonly lines: LogLine[]
  stop(): Promise<void>
}

type AnyKind = JobKind<never, unknown>

/** Jobs of these kinds. Those of a shared state may be run by other servers, too. */
async function open(
  t: Test,
  data: string,
  kinds: unknown[],
  { shared = false, ...options }: Partial<JobsOptions> & { readonly shared?: boolean } = {},
): Promise<Running> {
  const { log, lines } = keptLog()
  const state = await openState({ data, log })
  const { locks, requireIntact, raiseMark } = state
  const seen = { shared, records: state.records.bind(state), locks, requireIntact, raiseMark }
  const workTimes = { graceMs: 50, silenceMs: 3_600_000 }
  const jobs = await openJobs({ state: seen, log, contextOf, workTimes, ...options })
  for (const kind of kinds) jobs.register(kind as AnyKind)
  jobs.start()
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= jobs.stop().then(() => state.close())
    return stopped
  }
  t.teardown(stop)
  return { jobs, state, lines, stop }
}

const asked = (more: Partial<NewJob<unknown>> = {}): NewJob<unknown> => ({
  kind: 'test:Work',
  resource: '/b/k',
  input: { n: 1 },
  accessKeyId: 'me',
  ...more,
})

const settled = (jobs: OwnJobs, { id }: Job, ms = 60_000) => jobs.wait(id, ms)

/** Something to be let go on from outside. */
function gate() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => (open = resolve))
  return { passed, open }
}

t.test('a job runs for the caller who asked, and what a bug throws is told to none', async (t) => {
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run({ input, context }) {
      if (input === 'bug') throw new TypeError('secret text of a bug')
      return context.caller
    },
  }
  const { jobs } = await open(t, temporaryFolder(t), [kind])
  const ran = async (more: Partial<NewJob<unknown>>) => settled(jobs, await jobs.create(asked(more)))
  t.match(await ran({ input: '' }), { status: 'Complete', result: 'me' })
  const broken = await ran({ input: 'bug' })
  t.match(broken, { status: 'Failed', failure: { code: 'InternalError' } })
  t.notMatch(JSON.stringify(broken), /secret/)
  t.match(await ran({ accessKeyId: 'gone' }), { status: 'Failed', failure: { code: 'AccessDenied' } })
  await t.rejects(jobs.create(asked({ kind: 'test:None' })), /No plugin registers jobs of the kind/)
})

t.test('tokens, and repeats without one', async (t) => {
  let now = 1_000_000
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run({ input }) {
      if (input === 'bad') throw new S3Error('NoSuchKey')
    },
  }
  const data = temporaryFolder(t)
  const first = await open(t, data, [kind], { now: () => now })
  const wanted = asked({ token: 'one', requestHash: 'h' })
  const made = await Promise.all([1, 2, 3].map(() => first.jobs.create(wanted)))
  const [id = '', ...others] = new Set(made.map((job) => job.id))
  t.same(others, [], 'one job')
  await first.jobs.wait(id, 60_000)
  await first.stop()
  const { jobs } = await open(t, data, [kind], { now: () => now })
  t.match(await jobs.create(wanted), { id, status: 'Complete' }, 'also after a restart')
  t.not((await jobs.create({ ...wanted, accessKeyId: 'other' })).id, id, 'the token of another identity is another')

  const repeated = asked({ requestHash: 'r', refuseRepeatsWithin: 60_000 })
  await jobs.create(repeated)
  t.ok(await jobs.create({ ...repeated, refuseRepeatsWithin: 0 }), 'unless it is forced')
  await t.rejects(jobs.create(repeated), { code: 'DuplicateRequest' }, 'which does not let the next one pass')
  now += 60_000
  t.ok(await jobs.create(repeated))
  const bad = asked({ input: 'bad', requestHash: 'bad', refuseRepeatsWithin: 60_000 })
  await settled(jobs, await jobs.create(bad))
  t.ok(await jobs.create(bad), 'what failed may be tried again')
})

t.test('so many at once of a kind', async (t) => {
  let now = 0
  let most = 0
  /** The first ones wait for each other, so that as many meet as may. */
  const work = (name: string, meet: number, concurrency?: number): JobKind<unknown, unknown> => {
    const met = gate()
    return {
      name,
      ...(concurrency && { concurrency }),
      async run() {
        most = Math.max(most, ++now)
        if (now === meet) met.open()
        await met.passed
        await sleep(5)
        now--
      },
    }
  }
  const { jobs } = await open(t, temporaryFolder(t), [work('test:Work', 4), work('test:Slow', 1, 1)])
  const all = await Promise.all(Array.from({ length: 20 }, () => jobs.create(asked())))
  for (const job of all) t.match(await settled(jobs, job), { status: 'Complete' })
  t.equal(most, 4)
  most = 0
  const slow = await Promise.all(Array.from({ length: 5 }, () => jobs.create(asked({ kind: 'test:Slow' }))))
  for (const job of slow) await settled(jobs, job)
  t.equal(most, 1)
  t.throws(() => jobs.register(work('test:Late', 1)), /must be registered before the start/)
})

t.test('held jobs', async (t) => {
  const data = temporaryFolder(t)
  const inputs: unknown[] = []
  const run = async ({ input }: RunningJob<unknown>) => void inputs.push(input)
  const drops: JobKind<unknown, unknown> = { name: 'test:Work', run }
  const keeps: JobKind<unknown, unknown> = { name: 'test:Kept', run, held: async () => 'release' }
  const first = await open(t, data, [drops, keeps])
  const held = await first.jobs.create(asked({ held: true }))
  t.match(await first.jobs.wait(held.id, 50), { status: 'New' })
  await first.jobs.release(held.id, { n: 2 })
  t.match(await settled(first.jobs, held), { status: 'Complete', input: { n: 2 } })
  const dropped = await first.jobs.create(asked({ held: true }))
  await first.jobs.drop(dropped.id)
  t.equal(await first.jobs.get(dropped.id), undefined)
  const cancelled = await first.jobs.create(asked({ held: true }))
  t.match(await first.jobs.cancel(cancelled.id), { status: 'Cancelled' })
  await first.jobs.release(cancelled.id)
  await first.jobs.drop(cancelled.id)
  t.match(await first.jobs.get(cancelled.id), { status: 'Cancelled' }, 'and nothing makes it run')
  const left = await first.jobs.create(asked({ held: true }))
  const kept = await first.jobs.create(asked({ held: true, kind: 'test:Kept', input: 'kept' }))
  await first.stop()
  const { jobs } = await open(t, data, [drops, keeps])
  t.match(await settled(jobs, kept), { status: 'Complete' }, 'its kind released it after the restart')
  await until('the other is gone', async () => (await jobs.get(left.id)) === undefined)
  t.same(inputs, [{ n: 2 }, 'kept'])
})

t.test('what becomes of a job that committed', async (t) => {
  const data = temporaryFolder(t)
  const asks: string[] = []
  let known = false
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run(job) {
      await job.commit()
      switch (job.input) {
        case 'refused':
          throw new S3Error('DealRejected')
        case 'lost':
          throw new OutcomeUnknown('the answer was lost')
        case 'bug':
          throw new TypeError('oops')
        case 'nothing':
          await job.uncommit()
          throw new S3Error('ServiceUnavailable')
        default:
          return 'done'
      }
    },
    async reconcile({ job, input }) {
      asks.push(job.id)
      return known ? { done: `found ${input}` } : undefined
    },
  }
  const first = await open(t, data, [kind])
  const make = (input: string) => first.jobs.create(asked({ input }))
  t.match(await settled(first.jobs, await make('fine')), { status: 'Complete', result: 'done' })
  t.match(await settled(first.jobs, await make('refused')), { status: 'Failed', failure: { code: 'DealRejected' } })
  t.match(await settled(first.jobs, await make('nothing')), {
    status: 'Failed',
    failure: { code: 'ServiceUnavailable' },
  })
  const lost = await make('lost')
  const bug = await make('bug')
  for (const { id } of [lost, bug]) {
    await until('it is unknown', async () => (await first.jobs.get(id))?.status === 'Unknown')
    await t.rejects(first.jobs.cancel(id), { code: 'InvalidRequest' })
  }
  await first.stop()
  // Each time that nobody knows the outcome, the next question comes later: the times asked double the pause.
  for (const times of [2, 3]) {
    const before = asks.length
    const later = await open(t, data, [kind], { now: () => Date.now() + times * 3_600_000 })
    await until('it has asked', () => asks.length >= before + 2)
    const record = () => later.state.records<{ asked: number }>('jobs').get(lost.id)
    await until('the question is counted', async () => (await record())?.asked === times)
    await later.stop()
  }
  asks.length = 0
  known = true
  const { jobs } = await open(t, data, [kind], { now: () => Date.now() + 5 * 3_600_000 })
  t.match(await settled(jobs, lost), { status: 'Complete', result: 'found lost' }, 'asked at the start')
  t.match(await settled(jobs, bug), { status: 'Complete', result: 'found bug' })
  t.same(asks.sort(), [lost.id, bug.id].sort())
})

t.test('a request with the same signature settles, runs or cancels a job once, also after a restart', async (t) => {
  let runs = 0
  const kind: JobKind<unknown, unknown> = {
    name: 'test:Work',
    async run(job) {
      await job.commit()
      runs++
      throw new OutcomeUnknown('lost')
    },
  }
  const data = temporaryFolder(t)
  const first = await open(t, data, [kind])
  const { id } = await first.jobs.create(asked())
  const isUnknown = (jobs: OwnJobs) => until('it is unknown', async () => (await jobs.get(id))?.status === 'Unknown')
  await isUnknown(first.jobs)
  await first.jobs.retry(id, 'signed-1')
  await until('it ran again', () => runs === 2)
  await isUnknown(first.jobs)
  await first.stop()

  const { jobs } = await open(t, data, [kind])
  await isUnknown(jobs)
  t.match(await jobs.retry(id, 'signed-1'), { status: 'Unknown' })
  t.match(await jobs.resolve(id, { failure: { code: 'X', message: 'm' } }, 'signed-1'), { status: 'Unknown' })
  const no = { failure: { code: 'X', message: 'm' } }
  t.match(await jobs.resolve(id, no, 'signed-2'), { status: 'Failed' })
  t.match(await jobs.resolve(id, no, 'signed-2'), { status: 'Failed' }, 'an answer that was lost is given again')
  await t.rejects(jobs.resolve(id, no, 'signed-4'), { code: 'InvalidRequest' })
  await jobs.retry(id, 'signed-3')
  await until('it ran again', () => runs === 3)
  await isUnknown(jobs)
  t.match(await jobs.resolve(id, no, 'signed-2'), { status: 'Unknown' }, 'its money stays reserved')
  t.match(await jobs.resolve(id, no, 'signed-4'), { status: 'Unknown' }, 'a refused request does not count later')
  const often = Array.from({ length: 101 }, (_, n) => () => jobs.cancel(id, `often-${n}`).catch(({ code }) => code))
  const codes: unknown[] = []
  for (const cancel of often) codes.push(await cancel())
  t.equal(codes.at(0), 'InvalidRequest')
  t.equal(codes.at(-1), 'SlowDown', 'the record of a job does not grow without bound')
  t.equal(runs, 3)
})

t.test('cancelled', async (t) => {
  const begun = gate()
  let tried: unknown
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    concurrency: 1,
    async run(job) {
      if (job.input === 'quick') return 'ran'
      begun.open()
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve))
      await job.commit().catch((error) => {
        tried = error
        throw error
      })
      return undefined
    },
  }
  const { jobs } = await open(t, temporaryFolder(t), [kind])
  const running = await jobs.create(asked({ input: 'slow' }))
  const waiting = await jobs.create(asked({ input: 'quick' }))
  await begun.passed
  t.match(await jobs.cancel(waiting.id), { status: 'Cancelled' })
  t.match(await jobs.cancel(running.id), { status: 'Cancelling' })
  t.match(await settled(jobs, running), { status: 'Cancelled' })
  t.match(tried, { name: 'AbortError' }, 'nothing can be committed after it')
  t.match(await jobs.cancel(running.id), { status: 'Cancelled' }, 'again')
  t.match(await jobs.retry(waiting.id), { status: 'New' })
  t.match(await settled(jobs, waiting), { status: 'Complete', result: 'ran' })
  await t.rejects(jobs.cancel(waiting.id), { code: 'InvalidRequest' })
})

t.test('a shutdown tells running jobs, which go on after the restart', async (t) => {
  const data = temporaryFolder(t)
  const begun = gate()
  let runs = 0
  const kind: JobKind<unknown, unknown> = {
    name: 'test:Work',
    async run(job) {
      if (++runs > 1) return job.job.progress.phase
      job.report({ phase: 'Half' })
      begun.open()
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve))
      throw new S3Error('ServiceUnavailable')
    },
  }
  const first = await open(t, data, [kind])
  const job = await first.jobs.create(asked())
  await begun.passed
  const waiting = first.jobs.wait(job.id, 60_000)
  await first.stop()
  t.match(await waiting, { status: 'Active' }, 'who waits is let go')
  await t.rejects(first.jobs.create(asked()), { code: 'ServiceUnavailable' })
  const { jobs } = await open(t, data, [kind])
  t.match(await settled(jobs, job), { status: 'Complete', result: 'Half' })
})

t.test('listed newest first, and removed when they are old', async (t) => {
  let now = Date.parse('2026-01-01')
  const data = temporaryFolder(t)
  const work = (name: string): JobKind<string, unknown> => ({
    name,
    async run({ input }) {
      if (input === 'bad') throw new S3Error('NoSuchKey')
    },
  })
  const kinds = [work('test:Work'), work('other:Work')]
  const first = await open(t, data, kinds, { now: () => now })
  const made: Job[] = []
  for (let i = 0; i < 20; i++) {
    now += i % 3
    const [kind, input] = [i % 2 ? 'other:Work' : 'test:Work', i % 10 ? 'good' : 'bad']
    made.push(await first.jobs.create(asked({ kind, input, accessKeyId: i % 4 ? 'me' : 'you', token: `${i}` })))
  }
  for (const job of made) await settled(first.jobs, job)
  await first.stop()

  const { jobs, state } = await open(t, data, kinds, { now: () => now })
  const ids = (found: readonly Job[]) => found.map(({ id }) => id)
  const newest = ids(made).reverse()
  const page = ids(await jobs.list({ limit: 7 }))
  const rest = ids(await jobs.list({ limit: 100, before: page.at(-1) }))
  t.same([...page, ...rest], newest, 'in pages, after a restart')
  const listed = async (wanted: Partial<Parameters<OwnJobs['list']>[0]>, fits: (i: number) => boolean) =>
    t.same(ids(await jobs.list({ limit: 100, ...wanted })), ids(made.filter((_, i) => fits(i))).reverse())
  await listed({ accessKeyId: 'you' }, (i) => i % 4 === 0)
  await listed({ plugin: 'other' }, (i) => i % 2 === 1)
  await listed({ status: 'Failed' }, (i) => i % 10 === 0)
  await listed({ status: 'Active' }, () => false)
  await listed({ matches: ({ token }) => Number(token) < 5 }, (i) => i < 5)
  now += 8 * 24 * 60 * 60 * 1000
  const again = asked({ accessKeyId: 'you', token: '0' })
  t.equal((await jobs.create(again)).id, made[0]?.id, 'until it is removed a token holds')
  await settled(jobs, await jobs.create(asked({ input: 'good', token: 'fresh' })))
  await jobs.stop()
  await state.close()
  const third = await open(t, data, kinds, { now: () => now, expiryMs: 7 * 24 * 60 * 60 * 1000 })
  await until('the old ones are gone', async () => (await third.jobs.list({ limit: 1000 })).length === 1)
  t.not((await third.jobs.create(again)).id, made[0]?.id)
})

t.test('ids sort as they were made, also when the clock is set back', async (t) => {
  let now = 1_700_000_000_000
  const next = ulids(() => now)
  const made = Array.from({ length: 1000 }, (_, i) => {
    if (i === 500) now -= 5000
    return next()
  })
  t.same([...new Set(made)].sort(), made)
})

const never = () => new Promise<never>(() => {})

t.test('a run that does not end when it is cancelled gives its place up, and counts for nothing', async (t) => {
  let running: RunningJob<string> | undefined
  let end: (result: string) => void = () => {}
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    concurrency: 1,
    run(job) {
      if (job.input === 'quick' || running) return Promise.resolve('ran')
      running = job
      return new Promise((resolve) => (end = resolve))
    },
  }
  const { jobs, lines } = await open(t, temporaryFolder(t), [kind])
  const hanging = await jobs.create(asked({ input: 'hangs' }))
  const next = await jobs.create(asked({ input: 'quick' }))
  await until('it runs', () => running !== undefined)
  await jobs.cancel(hanging.id)
  t.match(await jobs.wait(hanging.id, 60_000), { status: 'Cancelled' })
  t.match(await jobs.wait(next.id, 60_000), { status: 'Complete', result: 'ran' })
  const line = lines.find(({ msg }) => msg.includes('is abandoned'))
  t.match(line, { level: 40, job: hanging.id, operation: 'test:Work', why: 'cancelled' })
  t.equal(running?.owned(), false)
  await t.rejects(running?.commit() ?? never(), { name: 'AbortError' })
  await t.rejects(running?.uncommit() ?? never(), { name: 'AbortError' })
  await jobs.retry(hanging.id)
  t.match(await jobs.wait(hanging.id, 60_000), { status: 'Complete', result: 'ran' })
  end('too late')
  await sleep(10)
  t.match(await jobs.get(hanging.id), { status: 'Complete', result: 'ran' })
})

t.test('a settling callback that answers nothing is called again', async (t) => {
  let asks = 0
  const signals: AbortSignal[] = []
  const hangsOnce =
    <T>(answer: T) =>
    ({ signal }: RunningJob<string>): Promise<T> => {
      signals.push(signal)
      return ++asks === 1 ? never() : Promise.resolve(answer)
    }
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run(job) {
      if (job.input === 'held') return 'begun'
      await job.commit()
      throw new Error('lost')
    },
    reconcile: hangsOnce({ done: 'found' }),
    held: hangsOnce('release' as const),
  }
  let jump = 0
  const options = { workTimes: { graceMs: 20, silenceMs: 50 }, now: () => Date.now() + jump }
  const data = temporaryFolder(t)
  const first = await open(t, data, [kind], options)
  const { id } = await first.jobs.create(asked({ input: 'sends' }))
  await until('it is unknown', async () => (await first.jobs.get(id))?.status === 'Unknown')
  await first.stop()
  jump += 60_000
  const second = await open(t, data, [kind], options)
  await until('the one that hangs is given up', () => second.lines.some(({ msg }) => msg.includes('is abandoned')))
  t.match(signals, [{ aborted: true }])
  t.match(await second.jobs.get(id), { status: 'Unknown' })
  await second.stop()
  const third = await open(t, data, [kind], options)
  t.match(await third.jobs.wait(id, 60_000), { status: 'Complete', result: 'found' })

  asks = 0
  const held = await third.jobs.create(asked({ input: 'held', held: true }))
  await third.jobs.leave(held.id)
  t.match(await third.jobs.wait(held.id, 60_000), { status: 'Complete', result: 'begun' })
  t.equal(asks, 2)
})
t.test('one that was put off is cancelled at once, also where another server may be at it', async (t) => {
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run() {
      throw new Retry(3_600_000, 'Waiting')
    },
  }
  const { jobs } = await open(t, temporaryFolder(t), [kind], { shared: true })
  const { id } = await jobs.create(asked({ input: 'waits' }))
  await until('it waits', async () => (await jobs.get(id))?.progress.phase === 'Waiting')
  await jobs.cancel(id)
  t.match(await jobs.wait(id, 60_000), { status: 'Cancelled' })
})

t.test('what a run throws that has lost its job says nothing of it', async (t) => {
  const { now } = Date
  t.teardown(() => (Date.now = now))
  let runs = 0
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run(job) {
      if (++runs === 2) return 'by the holder'
      t.equal(job.owned(), true)
      // The lease has run out.
      Date.now = () => now() + 60_000
      throw new S3Error('NoSuchKey')
    },
  }
  const { jobs } = await open(t, temporaryFolder(t), [kind], { shared: true })
  const { id } = await jobs.create(asked({ input: 'lost' }))
  await until('it ran', () => runs > 0)
  t.match(await jobs.wait(id, 60_000), { status: 'Complete', result: 'by the holder' })
})
