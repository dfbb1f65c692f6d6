import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Context, JobKind, RunningJob } from '../../../src/api/context.js'
import type { NewJob } from '../../../src/api/jobs.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { Retry } from '../../../src/plugins/jobs/live-job.js'
import { type JobsOptions, openJobs } from '../../../src/plugins/jobs/open-jobs.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { keptLog } from '../../support/server/kept-log.js'
import { until } from '../../support/waiting.js'

const never = () => new Promise<never>(() => {})

async function open(
  t: Test,
  kind: JobKind<never, unknown>,
  {
    shared = false,
    data = temporaryFolder(t),
    ...options
  }: Partial<JobsOptions> & { shared?: boolean; data?: string } = {},
) {
  const { log, lines } = keptLog()
  const opened = await openState({ data, log })
  const { records, locks } = opened
  const state = {
    shared,
    records: records.bind(opened),
    locks,
    requireIntact: opened.requireIntact,
    raiseMark: opened.raiseMark,
  }
  const contextOf = async () => ({}) as Context
  const jobs = await openJobs({ state, log, contextOf, attendance: { graceMs: 50, silenceMs: 3_600_000 }, ...options })
  jobs.register(kind)
  jobs.start()
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= jobs.stop().then(() => opened.close())
    return stopped
  }
  t.teardown(stop)
  return { jobs, lines, stop, data }
}

const asked = (input: string, more: Partial<NewJob<string>> = {}): NewJob<string> => ({
  ...{ kind: 'test:Work', resource: '/b/k', accessKeyId: 'me', input },
  ...more,
})

t.test('a run that does not end when it is cancelled gives its place up, and counts for nothing', async (t) => {
  let running: RunningJob<string> | undefined
  let end: (result: string) => void = () => {}
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    concurrency: 1,
    run(job) {
      if (job.input === 'quick' || running) return Promise.resolve('ran')
      running = job
      return new Promise((resolve) => {
        end = resolve
      })
    },
  }
  const { jobs, lines } = await open(t, kind)
  const hanging = await jobs.create(asked('hangs'))
  const next = await jobs.create(asked('quick'))
  await until('it runs', () => running !== undefined)
  await jobs.cancel(hanging.id)
  t.match(await jobs.wait(hanging.id, 60_000), { status: 'Cancelled' })
  t.match(await jobs.wait(next.id, 60_000), { status: 'Complete', result: 'ran' })
  t.match(
    lines.find(({ msg }) => msg.includes('is abandoned')),
    { level: 40, job: hanging.id, operation: 'test:Work', why: 'cancelled' },
  )
  t.equal(running?.owned(), false)
  await t.rejects(running?.commit() ?? never(), { name: 'AbortError' })
  await t.rejects(running?.uncommit() ?? never(), { name: 'AbortError' })
  await jobs.retry(hanging.id)
  t.match(await jobs.wait(hanging.id, 60_000), { status: 'Complete', result: 'ran' })
  end('too late')
  await sleep(10)
  t.match(await jobs.get(hanging.id), { status: 'Complete', result: 'ran' })
})

t.test('a run that says nothing is logged, and goes on', async (t) => {
  let end = () => {}
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run() {
      await new Promise<void>((resolve) => {
        end = resolve
      })
      return 'done'
    },
  }
  const { jobs, lines } = await open(t, kind, { attendance: { graceMs: 50, silenceMs: 20 } })
  const { id } = await jobs.create(asked('long'))
  const told = () => lines.filter(({ msg }) => msg.includes('not reported for a long time'))
  await until('it is logged again', () => told().length >= 3)
  const [first, second, third] = told()
  t.match(first, { level: 40, job: id, operation: 'test:Work' })
  for (const [line, least] of [
    [first, 20],
    [second, 40],
    [third, 80],
  ] as const)
    t.ok(Number(line?.silentMs) >= least, 'ever less often')
  t.match(await jobs.get(id), { status: 'Active' })
  end()
  t.match(await jobs.wait(id, 60_000), { status: 'Complete', result: 'done' })
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
  const options = { attendance: { graceMs: 20, silenceMs: 50 }, now: () => Date.now() + jump }
  const first = await open(t, kind, options)
  const { id } = await first.jobs.create(asked('sends'))
  await until('it is unknown', async () => (await first.jobs.get(id))?.status === 'Unknown')
  await first.stop()
  jump += 60_000
  const second = await open(t, kind, { ...options, data: first.data })
  await until('the one that hangs is given up', () => second.lines.some(({ msg }) => msg.includes('is abandoned')))
  t.match(signals, [{ aborted: true }])
  t.match(await second.jobs.get(id), { status: 'Unknown' })
  await second.stop()
  const third = await open(t, kind, { ...options, data: first.data })
  t.match(await third.jobs.wait(id, 60_000), { status: 'Complete', result: 'found' })

  asks = 0
  const held = await third.jobs.create(asked('held', { held: true }))
  await third.jobs.leave(held.id)
  t.match(await third.jobs.wait(held.id, 60_000), { status: 'Complete', result: 'begun' })
  t.equal(asks, 2)
})

t.test('a held job that is left is begun or forgotten without a restart', async (t) => {
  const decisions: ('release' | 'drop')[] = ['release', 'drop']
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    run: async ({ input }) => input,
    held: async () => decisions.shift() ?? 'drop',
  }
  const { jobs } = await open(t, kind)
  const begins = await jobs.create(asked('begins', { held: true }))
  await jobs.leave(begins.id)
  t.match(await jobs.wait(begins.id, 60_000), { status: 'Complete', result: 'begins' })
  const forgotten = await jobs.create(asked('forgotten', { held: true }))
  await jobs.leave(forgotten.id)
  await until('it is forgotten', async () => !(await jobs.get(forgotten.id)))
  await jobs.leave('j-none')
})

t.test('one that was put off is cancelled at once, also where another server may be at it', async (t) => {
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run() {
      throw new Retry(3_600_000, 'Waiting')
    },
  }
  const { jobs } = await open(t, kind, { shared: true })
  const { id } = await jobs.create(asked('waits'))
  await until('it waits', async () => (await jobs.get(id))?.progress.phase === 'Waiting')
  await jobs.cancel(id)
  t.match(await jobs.wait(id, 60_000), { status: 'Cancelled' })
})

t.test('what a run throws that has lost its job says nothing of it', async (t) => {
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  let runs = 0
  const kind: JobKind<string, unknown> = {
    name: 'test:Work',
    async run(job) {
      if (++runs === 2) return 'by whoever has it'
      t.equal(job.owned(), true)
      // The lease has run out.
      Date.now = () => now() + 60_000
      throw new S3Error('NoSuchKey')
    },
  }
  const { jobs } = await open(t, kind, { shared: true })
  const { id } = await jobs.create(asked('lost'))
  await until('it ran', () => runs > 0)
  t.match(await jobs.wait(id, 60_000), { status: 'Complete', result: 'by whoever has it' })
})
