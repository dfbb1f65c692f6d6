import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { Context } from '../../src/context.js'
import { S3Error } from '../../src/errors/s3-error.js'
import type { JobKind, NewJob } from '../../src/jobs/job.js'
import { jobStore } from '../../src/jobs/job-store.js'
import { openJobs } from '../../src/jobs/open-jobs.js'
import { ended, newRecord } from '../../src/jobs/record.js'
import { makeRoom } from '../../src/jobs/sweep-jobs.js'
import { ulids } from '../../src/jobs/ulid.js'
import { openState } from '../../src/state/open-state.js'
import type { Records, State } from '../../src/state/state.js'

const log = pino({ level: 'silent' })
const asked = (more: Partial<NewJob<unknown>> = {}): NewJob<unknown> => ({
  ...{ kind: 'test:Work', resource: '/b/k', input: {}, accessKeyId: 'me' },
  ...more,
})

async function until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 2000; i++) {
    if (await look()) return
    await sleep(10)
  }
  throw new Error(`waited in vain until ${what}`)
}

/** A state whose records of one kind cannot be written as long as somebody says so. */
async function fragile(t: Test) {
  const state = await openState({ data: t.testdir({}), log })
  t.teardown(() => state.close())
  const broken = new Set<string>()
  let refusals = 0
  const records = <T>(name: string): Records<T> => {
    const whole = state.records<T>(name)
    return {
      get: (key) => whole.get(key),
      delete: (key) => whole.delete(key),
      entries: () => whole.entries(),
      async set(key, value) {
        if (broken.has(name)) {
          refusals++
          throw new S3Error('ServiceUnavailable')
        }
        await whole.set(key, value)
      },
    }
  }
  return { state: { ...state, shared: false, locks: state.locks, records } as State, broken, refusals: () => refusals }
}

async function open(t: Test, state: State, kind: JobKind<unknown, unknown>) {
  const jobs = await openJobs({ state, log, contextOf: async () => ({}) as Context })
  jobs.register(kind)
  jobs.start()
  t.teardown(() => jobs.stop())
  return jobs
}

t.test('an outcome that cannot be written is written later', async (t) => {
  const { state, broken, refusals } = await fragile(t)
  let runs = 0
  const jobs = await open(t, state, {
    name: 'test:Work',
    async run(job) {
      runs++
      await job.commit()
      broken.add('jobs')
      return 'done'
    },
  })
  const { id } = await jobs.create(asked())
  await until('it was tried again', () => refusals() > 1)
  t.match(await jobs.get(id), { status: 'Active' })
  broken.clear()
  t.match(await jobs.wait(id, 20_000), { status: 'Complete', result: 'done' })
  t.equal(runs, 1)
})

t.test('what cannot be committed is not sent', async (t) => {
  const { state, broken } = await fragile(t)
  let sent = 0
  const jobs = await open(t, state, {
    name: 'test:Work',
    async run(job) {
      broken.add('jobs')
      await job.commit().finally(() => broken.clear())
      sent++
    },
  })
  const { id } = await jobs.create(asked())
  await until('it waits', async () => (await jobs.get(id))?.progress.phase !== '')
  t.match(await jobs.get(id), { status: 'Active', progress: { phase: /records/ } })
  t.equal(sent, 0)
})

t.test('a job that cannot be written is not made', async (t) => {
  const { state, broken } = await fragile(t)
  let runs = 0
  const jobs = await open(t, state, { name: 'test:Work', run: async () => ++runs })
  for (const kind of ['job-tokens', 'job-index', 'jobs']) {
    broken.add(kind)
    await t.rejects(jobs.create(asked({ token: 't' })), { code: 'ServiceUnavailable' }, kind)
    broken.clear()
  }
  t.same(await jobs.list({ limit: 10 }), [])
  const { id } = await jobs.create(asked({ token: 't' }))
  t.match(await jobs.wait(id, 20_000), { status: 'Complete' }, 'and its token is free')
  t.equal(runs, 1)
  await t.rejects(jobs.create(asked({ input: 1n })), TypeError, 'what is no JSON')
})

t.test('so many jobs are remembered', async (t) => {
  const state = await openState({ data: t.testdir({}), log })
  t.teardown(() => state.close())
  const store = jobStore(state, Date.now)
  const next = ulids(Date.now)
  const add = async (how: 'open' | 'ended' | 'token') => {
    const record = newRecord(`j-${next()}`, asked(how === 'token' ? { token: next() } : {}), Date.now())
    await store.add(how === 'open' ? record : ended(record, { status: 'Complete', result: null }))
    return record.job.id
  }
  const [kept, old, alsoOld, recent] = [await add('token'), await add('ended'), await add('ended'), await add('open')]
  await makeRoom(store, 5)
  t.equal(store.index.size, 4, 'there is room')
  await makeRoom(store, 4)
  t.same(
    [kept, old, alsoOld, recent].map((id) => store.index.get(id) !== undefined),
    [true, false, false, true],
  )
  await t.rejects(makeRoom(store, 2), { code: 'ServiceUnavailable' })
  t.ok(await store.read(kept))
  t.equal(await store.read(old), undefined)
})
