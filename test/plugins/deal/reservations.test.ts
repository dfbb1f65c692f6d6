import t, { type Test } from 'tap'
import { DealDeps } from '../../../plugins/deal/deps.js'
import { objectDeals } from '../../../plugins/deal/jobs/deal-jobs.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../../../plugins/deal/jobs/inputs.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import { type Attempt, Attempts } from '../../../plugins/deal/records/attempts.js'
import { endedInVain } from '../../../plugins/deal/records/held-deals.js'
import type { RunningJob } from '../../../src/api/context.js'
import type { Job } from '../../../src/api/jobs.js'
import { createLogger } from '../../../src/common/log.js'
import { temporaryFolder } from '../../support/content/folders.js'
import type { Fate } from '../../support/gateway/between.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { type DealProxy, startDealProxy } from './proxy.js'
import { ScriptedDeals } from './scripted-deals.js'

const terms = { minerId: 'f01000', price: '0.000005', duration: 1000, verifiedDeal: false, fastRetrieval: true }
const input: ObjectDealInput = { bucket: 'fakes', key: 'a', terms, cause: 'lifecycle' }
const COST = 5_000_000_000_000_000n

async function start(t: Test, tokens = false) {
  await farFromMidnight()
  const deals = await ScriptedDeals.start(t, { tokens })
  deals.missIs500 = false
  deals.objects.set('a', Buffer.from('content'))
  const data = temporaryFolder(t)
  const proxy = await startDealProxy(t, deals.gateway, { data })
  return { deals, data, proxy, parts: partsOf(proxy) }
}

/** What another server on the same state works with. */
function partsOf({ host }: DealProxy): DealDeps {
  return new DealDeps(dealOptions.parse({}), host)
}

/** Of a lifecycle transition: the money is put on record before the job begins. */
async function reserved({ host }: DealProxy, parts: DealDeps): Promise<Job<ObjectDealInput>> {
  const job = await host.own.jobs.create({
    ...{ kind: OBJECT_DEAL, resource: '/fakes/a', input, accessKeyId: '', held: true },
  })
  await parts.spending.reserve({ jobId: job.id, bucket: 'fakes', amount: COST }, { all: COST, bucket: undefined })
  return job
}

t.test('a run whose job another server has taken over leaves the money of that one alone', async (t) => {
  const { proxy, parts } = await start(t)
  const job = await reserved(proxy, parts)
  const run = (owned: boolean, ...failures: ('commit' | 'uncommit')[]) => {
    const act = (what: 'commit' | 'uncommit') => async () => {
      if (failures.includes(what)) throw new Error('interrupted')
    }
    const running: RunningJob<ObjectDealInput> = {
      ...{ job, input, context: proxy.host.own, log: createLogger({ level: 'silent' }) },
      ...{ signal: new AbortController().signal, report() {}, note() {}, link() {} },
      owned: () => owned,
      ...{ commit: act('commit'), uncommit: act('uncommit') },
    }
    return objectDeals(parts).run(running)
  }
  await t.rejects(run(false, 'commit'), /interrupted/)
  t.equal(await parts.spending.spentToday(), COST)
  await t.rejects(run(true, 'commit'), /interrupted/)
  t.equal(await parts.spending.spentToday(), 0n, 'otherwise nothing was spent')
})

t.test('no money is held back by jobs that end before they ask the gateway', async (t) => {
  const { proxy, parts, deals, data } = await start(t)
  const { jobs } = proxy.host.own
  const refused = await reserved(proxy, parts)
  deals.objects.clear()
  await jobs.release(refused.id)
  t.match(await jobs.wait(refused.id, 60_000), { status: 'Failed', failure: { code: 'NoSuchKey' } })
  t.equal(await parts.spending.spentToday(), 0n)

  await reserved(proxy, parts)
  await proxy.close()
  const second = await startDealProxy(t, deals.gateway, { data })
  const nothing = async () => (await partsOf(second).spending.spentToday()) === 0n
  await until('the job of an object that does not name it is forgotten', nothing)

  const cancelled = await reserved(second, partsOf(second))
  await second.host.own.jobs.cancel(cancelled.id)
  await second.close()
  const third = await startDealProxy(t, deals.gateway, { data })
  await until('it is swept up', async () => (await partsOf(third).spending.spentToday()) === 0n)
})

t.test('a deal that is found while an operator runs its job again is not paid for again', async (t) => {
  const { proxy, deals } = await start(t)
  const { jobs } = proxy.host.own
  deals.accidents.push('lost-after')
  const { id } = await jobs.create({ kind: OBJECT_DEAL, resource: '/fakes/a', input, accessKeyId: '' })
  await until('nobody knows', async () => (await jobs.get(id))?.status === 'Unknown')
  const { fate } = deals.gateway
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const asked = new Promise<void>((resolve) => {
    deals.gateway.fate = async (request): Promise<Fate> => {
      if (!request.path.startsWith('/gateway/retrieve')) return fate(request)
      resolve()
      await opened
      return fate(request)
    }
  })
  await asked
  t.match(await jobs.retry(id), { status: 'New' })
  open()
  t.match(await jobs.wait(id, 60_000), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal1' } } })
  t.equal(deals.asked, 1)
})

t.test('sweeping forgets no attempt of a job that an operator runs again meanwhile', async (t) => {
  const { proxy } = await start(t)
  const attempts = new Attempts(proxy.host.state)
  const attempt: Attempt = { jobId: 'j-1', bucket: 'b', key: 'k', sent: 1, withToken: false, before: [] }
  const failed = { status: 'Failed' } as Job
  await attempts.begin(attempt)
  let looks = 0
  const again = async () => {
    if (++looks === 1) await attempts.begin({ ...attempt, sent: 2 })
    return failed
  }
  await attempts.sweep({ get: again })
  t.match(await attempts.get('j-1'), { sent: 2 })
  await attempts.sweep({ get: async () => failed })
  t.equal(await attempts.get('j-1'), undefined)
})

t.test('a job that is run again and cancelled while its deal is unknown keeps its money', async (t) => {
  const { proxy, deals, parts } = await start(t)
  const { jobs } = proxy.host.own
  deals.accidents.push('lost-after')
  deals.historyKnows = () => false
  const { id } = await jobs.create({ kind: OBJECT_DEAL, resource: '/fakes/a', input, accessKeyId: '' })
  await until('its outcome is unknown', async () => (await jobs.get(id))?.status === 'Unknown')
  const elsewhere = { get: async () => ({ id, input, operation: OBJECT_DEAL, status: 'Cancelled' }) as unknown as Job }
  await parts.attempts.sweep(elsewhere)
  t.match(await parts.attempts.get(id), { jobId: id }, 'the attempt is kept')
  const others: unknown = { jobs: elsewhere, attempts: parts.attempts, tasks: parts.tasks, deals: parts.deals }
  t.equal(await endedInVain(others as DealDeps, id), false)
})
