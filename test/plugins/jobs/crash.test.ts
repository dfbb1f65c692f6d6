import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import type { Context, JobKind } from '../../../src/api/context.js'
import type { Job, NewJob } from '../../../src/api/jobs.js'
import { OutcomeUnknown } from '../../../src/common/errors/s3-error.js'
import { type OwnJobs, openJobs } from '../../../src/plugins/jobs/open-jobs.js'
import { openState } from '../../../src/state/open-state.js'
import { redis } from '../../state/servers.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { endsWithUs, killed } from '../../support/server/child.js'
import { until } from '../../support/waiting.js'

const program = fileURLToPath(new URL('./crash-child.js', import.meta.url))

/** The suite runs a sample; `npm run stress` runs more. */
const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 4)

/**
 * Jobs that each round adds. Each is reported in two lines: more than the round is let print, so that it is always
 * killed.
 */
const STEP = 16

const JOBS = ROUNDS * STEP

const LONGEST_ROUND = 20

interface Ended {
  readonly lines: string[]
  readonly signal: NodeJS.Signals | null
}

/** Runs the program for so many jobs; kills it, as soon as it has printed so many lines, a random moment later. */
async function run(
  t: Test,
  data: string,
  jobs: number,
  kill?: { readonly afterLines: number; readonly andMs: number },
): Promise<Ended> {
  const child = spawn(process.execPath, [program, data, String(jobs), ...(kill ? ['stay'] : [])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endsWithUs(child)
  t.teardown(() => killed(child))
  const closed = once(child, 'close')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length === kill?.afterLines) void sleep(kill.andMs).then(() => child.kill('SIGKILL'))
  }
  await closed
  return { lines, signal: child.signalCode }
}

t.test('killed at random moments: no job is lost, none is done twice', async (t) => {
  const data = temporaryFolder(t)
  const ids = new Map<string, string>()
  const ends = new Map<string, string>()
  const take = (lines: string[]) => {
    for (const line of lines) {
      const [what, i = '', id = '', ...end] = line.split(' ')
      if ((ids.get(i) ?? id) !== id) t.fail(`the token ${i} is now another job`)
      ids.set(i, id)
      if (what !== 'ended') continue
      const told = end.join(' ')
      if ((ends.get(i) ?? told) !== told) t.fail(`the job ${i} ended as ${told} after it had ended as ${ends.get(i)}`)
      ends.set(i, told)
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    // Each start first reports all jobs of the rounds before.
    const afterLines = 2 * ids.size + 1 + Math.floor(Math.random() * LONGEST_ROUND)
    const { lines, signal } = await run(t, data, STEP * (round + 1), { afterLines, andMs: Math.random() * 25 })
    take(lines)
    t.equal(signal, 'SIGKILL')
  }
  const { lines, signal } = await run(t, data, JOBS)
  take(lines)
  t.equal(signal, null)
  t.equal(ends.size, JOBS)
  t.equal(new Set(ids.values()).size, JOBS, 'one job for each token')
  const paid = linesOf(join(data, 'sent'))
  const wanted = (odd: number) => [...ids].filter(([i]) => Number(i) % 2 === odd).map(([i, id]) => `${id} ${i}`)
  t.same(paid.sort(), wanted(1).sort(), 'each was paid once')
  t.same([...new Set(linesOf(join(data, 'tidied')))].sort(), wanted(0).sort(), 'and all were tidied')
  const outcomes = new Set(ends.values())
  t.same(
    [...outcomes].filter((end) => !/^Complete (found paid|paid|tidied)$/.test(end)),
    [],
  )
  t.comment(`${[...ends.values()].filter((end) => end.includes('found')).length} of ${JOBS / 2} were found to be paid`)
})

function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').trim().split('\n')
}

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
