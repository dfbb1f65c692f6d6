import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { createLogger } from '../../../common/log.js'
import { DealDeps, openSpending } from '../../../plugins/deal/deps.js'
import { objectDeals } from '../../../plugins/deal/jobs/deal-jobs.js'
import { OBJECT_DEAL, type ObjectDealInput } from '../../../plugins/deal/jobs/inputs.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import { type Attempt, Attempts } from '../../../plugins/deal/records/attempts.js'
import { endedInVain } from '../../../plugins/deal/records/held-deals.js'
import type { RunningJob } from '../../../src/api/context.js'
import type { Job } from '../../../src/api/jobs.js'
import type { Records, State } from '../../../src/api/state.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import type { Fate } from '../../support/gateway/between.js'
import { type DealProxy, startDealProxy } from '../../support/plugins/deal-proxy.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { type Accident, ScriptedDeals } from './scripted-deals.js'
import { together } from './together.js'

// Most of the time goes by in pauses before it is asked what became of a deal.
t.jobs = 12

/** Records of deals of which the nth operation from now fails. */
function failingRecords(state: State) {
  let left = 0
  const counted = async <T>(run: () => Promise<T>): Promise<T> => {
    if (left > 0 && --left === 0) throw new S3Error('ServiceUnavailable')
    return run()
  }
  const records = <T>(name: string): Records<T> => {
    const own = state.records<T>(name)
    if (!name.startsWith('deal')) return own
    return {
      get: (key) => counted(() => own.get(key)),
      getMany: (keys) => counted(() => own.getMany(keys)),
      set: (key, value) => counted(() => own.set(key, value)),
      change: (key, to) =>
        own.change(key, async (value) => {
          await counted(async () => {})
          const changed = await to(value)
          if (changed !== value) await counted(async () => {})
          return changed
        }),
      delete: (key) => counted(() => own.delete(key)),
      entries: () => own.entries(),
    }
  }
  return {
    state: {
      ...state,
      records,
      shared: state.shared,
      locks: state.locks,
      objects: state.objects,
      uploads: state.uploads,
    },
    failAt(operation: number) {
      left = operation
    },
  }
}

const terms = { minerId: 'f01000', price: '0.000005', duration: 1000, verifiedDeal: false, fastRetrieval: true }
const asks = { f01000: terms, f02000: { ...terms, minerId: 'f02000' } } as const

function ask({ host }: DealProxy, key = 'a.txt', more: object = {}): Promise<Job> {
  return host.own.jobs.create({
    kind: OBJECT_DEAL,
    resource: `/fakes/${key}`,
    input: { bucket: 'fakes', key, terms, cause: 'call' },
    accessKeyId: '',
    ...more,
  })
}

/** Between two looks at what became of a deal the pauses are long. */
const ended = ({ host }: DealProxy, { id }: Job): Promise<Job> => host.own.jobs.wait(id, 120_000)

async function start(t: Test, tokens: boolean, options: Parameters<typeof startDealProxy>[2] = {}) {
  const deals = await ScriptedDeals.start(t, { tokens })
  deals.objects.set('a.txt', Buffer.from('content'))
  const data = temporaryFolder(t)
  const proxy = await startDealProxy(t, deals.gateway, { data, ...options })
  return { deals, proxy, data }
}

for (const tokens of [false, true]) {
  const kind = tokens ? 'a gateway with client tokens' : 'a public gateway'
  together(`${kind}: makes the deal of a job, which the object then tells`, async (t) => {
    const { deals, proxy } = await start(t, tokens)
    const job = await ended(proxy, await ask(proxy))
    t.match(job, {
      status: 'Complete',
      result: { Bucket: 'fakes', Key: 'a.txt', JobId: job.id, Deal: { DealCid: 'bafydeal1', DataCid: 'bafydata' } },
      links: { Deal: '/-/deal/v1/deals/bafydeal1' },
    })
    const [request] = deals.gateway.requests.filter(({ method, path }) => method === 'POST' && path.includes('/deal/'))
    t.same(JSON.parse(String(request?.body)), {
      MinerId: 'f01000',
      Price: '0.000005',
      Duration: '1000',
      VerifiedDeal: 'false',
      FastRetrieval: 'true',
      FastRetrival: 'true',
    })
    t.equal(request?.headers['x-cloud-client-token'], tokens ? job.id : undefined)
    const object = await proxy.host.own.store.head('fakes', 'a.txt')
    t.match(object.archive?.facts, {
      cid: 'bafydata',
      'deal-cid': 'bafydeal1',
      'deal-count': '1',
      'deal-provider': 'f01000',
      'deal-status': tokens ? 'StorageDealCheckForAcceptance' : 'Recorded',
    })
    await ended(proxy, await ask(proxy))
    const again = await proxy.host.own.store.head('fakes', 'a.txt')
    t.match(again.archive?.facts, { 'deal-cid': 'bafydeal2', 'deal-count': '2' })
  })

  const accidents: readonly Accident[] = ['lost-before', 'lost-after', 'timeout-before', 'timeout-after']
  for (const accident of accidents)
    together(`${kind}: ${accident}: there is one deal in the end`, async (t) => {
      const { deals, proxy } = await start(t, tokens, { deal: { reconcileAfterSeconds: 1 } })
      deals.missIs500 = false
      deals.accidents.push(accident)
      const job = await ended(proxy, await ask(proxy))
      t.equal(job.status, 'Complete', JSON.stringify(job.failure))
      t.equal(deals.made.length, 1)
      t.match(job.result, { Deal: { DealCid: 'bafydeal1' } })
      t.equal(deals.asked, tokens || accident.endsWith('before') ? 2 : 1)
    })

  together(`${kind}: several accidents, several jobs at once: one deal for each`, async (t) => {
    const { deals, proxy } = await start(t, tokens, { deal: { reconcileAfterSeconds: 1 } })
    deals.missIs500 = false
    deals.accidents.push('lost-after', 'none', 'lost-before', 'timeout-after', 'none', 'lost-after')
    const jobs = await Promise.all(Array.from({ length: 4 }, () => ask(proxy)))
    const results = await Promise.all(jobs.map((job) => ended(proxy, job)))
    t.same(
      results.map(({ status }) => status),
      jobs.map(() => 'Complete'),
    )
    t.equal(deals.made.length, 4)
    const cids = results.map(({ result }) => (result as { Deal: { DealCid: string } }).Deal.DealCid)
    t.equal(new Set(cids).size, 4, 'each has its own')
  })

  together(`${kind}: records that fail at any moment`, async (t) => {
    await farFromMidnight()
    const data = temporaryFolder(t)
    const state = await openState({ data, log: createLogger({ level: 'silent' }) })
    t.teardown(() => state.close())
    const deals = await ScriptedDeals.start(t, { tokens })
    deals.missIs500 = false
    const failing = failingRecords(state)
    const proxy = await startDealProxy(t, deals.gateway, {
      data,
      state: failing.state,
      deal: { reconcileAfterSeconds: 1, maxSpendPerDay: '1' },
    })
    const jobs: (readonly [number, Job])[] = []
    for (let moment = 1; moment <= 60; moment++) {
      const key = `object-${moment}`
      deals.objects.set(key, Buffer.from(key))
      failing.failAt(moment)
      const job = await ask(proxy, key)
      await until('the first run is over', async () => {
        const seen = await proxy.host.own.jobs.get(job.id)
        return seen && ['Complete', 'Failed', 'Unknown'].includes(seen.status)
      })
      failing.failAt(0)
      jobs.push([moment, job])
    }
    for (const [moment, job] of jobs) {
      const { status } = await ended(proxy, job)
      const made = deals.made.filter(({ subject }) => subject === `fakes/object-${moment}`)
      t.equal(made.length, status === 'Complete' ? 1 : 0, `${status} when operation ${moment} failed`)
    }
    const complete = deals.made.length
    t.ok(complete > 30 && complete < 60, `${complete} were made`)
    const spent = await openSpending({ state: state, now: Date.now }).spentToday()
    t.equal(spent, BigInt(complete) * 5_000_000_000_000_000n, 'what was made is what was spent')
  })

  together(`${kind}: a restart while the gateway is at it`, async (t) => {
    const { deals, proxy, data } = await start(t, tokens)
    let answer = () => {}
    deals.beforeAnswer = () => new Promise((resolve) => (answer = resolve))
    const job = await ask(proxy)
    await until('the gateway is at it', () => deals.made.length === 1)
    await proxy.close()
    answer()
    deals.beforeAnswer = async () => {}
    const later = await startDealProxy(t, deals.gateway, { data })
    t.match(await ended(later, job), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal1' } } })
    t.equal(deals.made.length, 1)
  })

  together(`${kind}: refusals are told in the words of the gateway, and nothing is spent`, async (t) => {
    await farFromMidnight()
    const { deals, proxy } = await start(t, tokens, { deal: { maxSpendPerDay: '0.005' } })
    const fields = { Service: 'gateway', UpstreamStatus: 'fail' }
    for (const [message, code] of [
      ['Sending deal failed during lotus sending deal', 'DealRejected'],
      ['Please provide a wallet address for sending deals', 'WalletNotLinked'],
    ] as const) {
      deals.refusal = message
      t.match(await ended(proxy, await ask(proxy)), { status: 'Failed', failure: { code, fields } })
    }
    deals.refusal = undefined
    t.equal(deals.made.length, 0)
    t.match(await ended(proxy, await ask(proxy)), { status: 'Complete' }, 'the cap has room for just one')
    t.match(await ended(proxy, await ask(proxy)), { status: 'Failed', failure: { code: 'SpendCapReached' } })
    t.equal(deals.made.length, 1)
  })
}

together('a gateway with client tokens: a deal that was lost is not made later of something else', async (t) => {
  const { deals, proxy } = await start(t, true)
  const { jobs, settings, store } = proxy.host.own
  const lost = async (accident: Accident): Promise<Job> => {
    deals.accidents.push(accident)
    const { revision } = await store.head('fakes', 'a.txt')
    const input = { bucket: 'fakes', key: 'a.txt', stamp: revision, terms, cause: 'call' }
    const job = await ask(proxy, 'a.txt', { input })
    await until('its outcome is unknown', async () => (await jobs.get(job.id))?.status === 'Unknown')
    return job
  }
  const replaced = await lost('lost-before')
  deals.settling = true
  deals.objects.set('a.txt', Buffer.from('replaced'))
  const told = () => deals.gateway.count('GET', '/gateway/dealprogress')
  const before = told()
  await until('it was asked', () => told() > before)
  deals.settling = false
  t.match(await ended(proxy, replaced), { status: 'Failed', failure: { code: 'PreconditionFailed' } })

  const made = await lost('lost-after')
  deals.objects.set('a.txt', Buffer.from('replaced again'))
  t.match(await ended(proxy, made), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal1' } } })

  const refused = await lost('lost-before')
  await settings.set('fakes', 'deal', { PublicNetwork: 'encrypted-only' })
  t.match(await ended(proxy, refused), { status: 'Failed', failure: { code: 'ObjectNotEncrypted' } })
  t.equal(deals.made.length, 1)
})

together(
  'a public gateway: a deal that shows late in the history is found, and one of another client is not taken for it',
  async (t) => {
    const { deals, proxy } = await start(t, false)
    await ended(proxy, await ask(proxy))
    t.equal(deals.made.length, 1)
    let known = 1
    deals.historyKnows = (deal) => deals.made.indexOf(deal) < known
    deals.accidents.push('lost-after')
    const job = await ask(proxy)
    await until('nobody knows', async () => (await proxy.host.own.jobs.get(job.id))?.status === 'Unknown')
    const other = { input: { bucket: 'fakes', key: 'a.txt', terms: asks.f02000, cause: 'call' } }
    t.match(await ended(proxy, await ask(proxy, 'a.txt', other)), { result: { Deal: { DealCid: 'bafydeal3' } } })
    known = 3
    t.match(await ended(proxy, job), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal2' } } })
    t.equal(deals.made.length, 3)
  },
)

together(
  'a public gateway: where nothing says that there is none, the job stays unknown until an operator settles it',
  async (t) => {
    const { deals, proxy } = await start(t, false, { deal: { reconcileAfterSeconds: 1 } })
    deals.accidents.push('lost-before')
    const job = await ask(proxy)
    await until('it was asked twice what became of it', () => deals.gateway.count('GET', '/gateway/retrieve') >= 3)
    t.equal((await proxy.host.own.jobs.get(job.id))?.status, 'Unknown')
    t.equal(deals.asked, 1)
    await proxy.host.own.jobs.retry(job.id)
    t.match(await ended(proxy, job), { status: 'Complete' })
    t.equal(deals.made.length, 1)
  },
)

together(
  'a public gateway: keys that a shell would not take for text are not sent, and slashes in one segment',
  async (t) => {
    const { deals, proxy } = await start(t, false)
    for (const key of ['a b', 'a;reboot', '$(id)', 'a`b`', "a'b", 'a"b', 'a\nb', '~', 'a*', '{a}']) {
      deals.objects.set(key, Buffer.from('x'))
      t.match(await ended(proxy, await ask(proxy, key)), { failure: { code: 'InvalidRequest' } }, key)
    }
    t.equal(deals.asked, 0)
    deals.objects.set('ä/b_c@1,2.txt', Buffer.from('x'))
    t.match(await ended(proxy, await ask(proxy, 'ä/b_c@1,2.txt')), { status: 'Complete' })
    t.ok(deals.gateway.requests.some(({ path }) => path === '/gateway/retrieve/fakes/%C3%A4%2Fb_c%401%2C2.txt'))
    t.ok(deals.gateway.requests.some(({ path }) => path === '/gateway/deal/fakes/%C3%A4/b_c%401%2C2.txt'))
  },
)

together('a job that an earlier version has requested its deal for keeps the token of that request', async (t) => {
  const { deals, proxy } = await start(t, true)
  const attempts = proxy.host.state.records<object>('deal-attempts')
  const revision = async () => (await proxy.host.own.store.find('fakes', 'a.txt'))?.revision
  const request = async (client: string, attempt: { readonly stamp: string | undefined }) => {
    const job = await ask(proxy, 'a.txt', { token: client, held: true })
    const old = { jobId: job.id, bucket: 'fakes', key: 'a.txt', sent: Date.now(), withToken: true, before: [] }
    await attempts.set(job.id, { ...old, ...attempt })
    await proxy.host.own.jobs.release(job.id, job.input)
    t.match(await ended(proxy, job), { status: 'Complete' })
    return { id: job.id, token: deals.made.at(-1)?.token }
  }
  const same = await request('one', { stamp: await revision() })
  t.equal(same.token, same.id, 'the gateway recognises the request that may still arrive')
  const replaced = await request('two', { stamp: 'of another object' })
  t.not(replaced.token, replaced.id)
})

const input: ObjectDealInput = { bucket: 'fakes', key: 'a', terms, cause: 'lifecycle' }
const COST = 5_000_000_000_000_000n

async function startReserving(t: Test, tokens = false) {
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
  const { proxy, parts } = await startReserving(t)
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
  const { proxy, parts, deals, data } = await startReserving(t)
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
  const { proxy, deals } = await startReserving(t)
  const { jobs } = proxy.host.own
  deals.accidents.push('lost-after')
  const { id } = await jobs.create({ kind: OBJECT_DEAL, resource: '/fakes/a', input, accessKeyId: '' })
  await until('nobody knows', async () => (await jobs.get(id))?.status === 'Unknown')
  const { fate } = deals.gateway
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
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
  const { proxy } = await startReserving(t)
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
  const { proxy, deals, parts } = await startReserving(t)
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
