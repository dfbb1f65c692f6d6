import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { OutcomeUnknown } from '../../../../common/errors/s3-error.js'
import type { Context, JobKind } from '../../../../src/api/context.js'
import type { Job, NewJob } from '../../../../src/api/jobs.js'
import { type OwnJobs, openJobs } from '../../../../src/plugins/jobs/open-jobs.js'
import { openState } from '../../../../src/state/open-state.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { until } from '../../../support/waiting.js'
import { redis } from '../../state/servers.js'

const log = pino({ level: 'silent' })

/**
 * How long a process may take to see what another one has left, ms: its leases run out after 30 s, and others look
 * every 10 s.
 */
const TAKEOVER_MS = 90_000

const asked = (input: string, more: Partial<NewJob<string>> = {}): NewJob<string> => ({
  ...{ kind: 'test:Work', resource: '/b/k', accessKeyId: 'me' },
  ...{ input, requestHash: input },
  ...more,
})

t.test('two proxies on one state', { skip: redis.skip }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  /** Which proxy ran what. */
  const runs: string[] = []
  const work = (proxy: string): JobKind<string, string> => ({
    name: 'test:Work',
    async run(job) {
      runs.push(`${proxy} ${job.input}`)
      if (job.input === 'hangs' && proxy === 'one') await new Promise(() => {})
      if (job.input === 'sends' && proxy === 'one') {
        await job.commit()
        await new Promise(() => {})
      }
      if (job.input === 'lasts') {
        await new Promise((resolve) => job.signal.addEventListener('abort', resolve))
        job.signal.throwIfAborted()
      }
      if (job.input === 'lost') throw new OutcomeUnknown('lost')
      await sleep(5)
      return proxy
    },
    reconcile: async ({ input }) => (input === 'sends' ? { done: 'it was sent' } : undefined),
    held: async () => 'drop',
  })

  async function open(t: Test, name: string) {
    const state = await openState({ data: `${temporaryFolder(t)}/${name}`, url: server.url, log })
    const jobs = await openJobs({ state, log, contextOf: async () => ({}) as Context })
    jobs.register(work(name))
    jobs.start()
    let ended: Promise<void> | undefined
    t.teardown(() => (ended ??= jobs.stop().then(() => state.close())))
    /** As if the process had died: what it runs goes on in vain, its leases are not renewed. */
    const die = () => (ended ??= state.close())
    return { jobs, die }
  }
  const one = await open(t, 'one')
  const two = await open(t, 'two')

  await t.test('a token is one job, whichever proxy is asked', async (t) => {
    const made = await Promise.all([one, two, one, two].map(({ jobs }) => jobs.create(asked('token', { token: 't' }))))
    t.equal(new Set(made.map(({ id }) => id)).size, 1)
    const { id } = made[0] as Job
    t.match(await two.jobs.wait(id, TAKEOVER_MS), { status: 'Complete' })
    t.equal(runs.filter((run) => run.endsWith('token')).length, 1)
    await t.rejects(two.jobs.create(asked('other', { token: 't' })), { code: 'IdempotencyParameterMismatch' })
    const repeats = { refuseRepeatsWithin: 60_000 }
    await one.jobs.create(asked('once', repeats))
    await t.rejects(two.jobs.create(asked('once', repeats)), { code: 'DuplicateRequest' })
  })

  await t.test('each job runs once, and either shows it', async (t) => {
    const sides = [one, two]
    const made = await Promise.all(
      Array.from({ length: 40 }, (_, i) => (sides[i % 2] as typeof one).jobs.create(asked(`many-${i}`))),
    )
    for (const [i, { id }] of made.entries()) {
      const other = sides[(i + 1) % 2] as typeof one
      t.match(await other.jobs.wait(id, TAKEOVER_MS), { status: 'Complete' })
    }
    const many = runs.filter((run) => run.includes('many-')).map((run) => run.split(' ')[1])
    t.equal(many.length, 40)
    t.equal(new Set(many).size, 40)
    const known = (jobs: OwnJobs) => jobs.list({ limit: 1000 }).then((found) => new Set(found.map(({ id }) => id)))
    for (const { jobs } of sides) {
      await until(
        'all are listed',
        async () => {
          const ids = await known(jobs)
          return made.every(({ id }) => ids.has(id))
        },
        TAKEOVER_MS,
      )
    }
  })

  await t.test('cancelled by the other one', async (t) => {
    const { id } = await one.jobs.create(asked('lasts'))
    await until('it runs', () => runs.includes('one lasts'), TAKEOVER_MS)
    t.match(await two.jobs.cancel(id), { status: 'Cancelling' })
    t.match(await two.jobs.wait(id, TAKEOVER_MS), { status: 'Cancelled' })
  })

  await t.test('settled by the other one', async (t) => {
    const { id } = await one.jobs.create(asked('lost'))
    await until('it is unknown', async () => (await two.jobs.get(id))?.status === 'Unknown', TAKEOVER_MS)
    await two.jobs.resolve(id, { result: 'by hand' })
    t.match(await one.jobs.wait(id, TAKEOVER_MS), { status: 'Complete', result: 'by hand' })
  })

  await t.test('what a dead process has left is taken over', async (t) => {
    const held = await one.jobs.create(asked('held', { held: true }))
    const left = await one.jobs.create(asked('held and left', { held: true }))
    const hanging = await one.jobs.create(asked('hangs'))
    const sending = await one.jobs.create(asked('sends'))
    await until(
      'both run',
      async () => {
        const status = await Promise.all([hanging, sending].map(async ({ id }) => (await two.jobs.get(id))?.status))
        return runs.includes('one hangs') && runs.includes('one sends') && status.every((one) => one === 'Active')
      },
      TAKEOVER_MS,
    )
    // Longer than two looks of the other one: it lets alone what another proxy works on.
    await sleep(22_000)
    t.notOk(runs.includes('two hangs'))
    t.match(await two.jobs.get(held.id), { status: 'New' }, 'and what another proxy holds')
    await one.jobs.release(held.id)
    t.match(await two.jobs.wait(held.id, TAKEOVER_MS), { status: 'Complete' })
    await one.die()
    t.match(await two.jobs.wait(hanging.id, TAKEOVER_MS), { status: 'Complete', result: 'two' }, 'run again')
    t.match(await two.jobs.wait(sending.id, TAKEOVER_MS), { status: 'Complete', result: 'it was sent' }, 'asked about')
    await until('what no proxy holds is dropped', async () => (await two.jobs.get(left.id)) === undefined, TAKEOVER_MS)
  })
})
