import t, { type Test } from 'tap'
import { openSpending } from '../../../plugins/deal/deps.js'
import {
  type DealCause,
  OBJECT_DEAL,
  type ObjectDealInput,
  RETRIEVE_BUCKET,
  type RetrieveBucketInput,
} from '../../../plugins/deal/jobs/inputs.js'
import { type Patience, patiently } from '../../../plugins/deal/records/sequence.js'
import type { Job } from '../../../src/api/jobs.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { Retry } from '../../../src/plugins/jobs/live-job.js'
import { temporaryFolder } from '../../support/content/folders.js'
import type { Fate } from '../../support/gateway/between.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { type DealProxy, owner, startDealProxy } from './proxy.js'
import { ScriptedDeals } from './scripted-deals.js'

// Most of the time goes by in pauses before a job is tried again.
t.jobs = 12

const terms = { minerId: 'f01000', price: '0.000005', duration: 1000, verifiedDeal: false, fastRetrieval: true }

async function start(t: Test, tokens: boolean) {
  const deals = await ScriptedDeals.start(t, { tokens })
  deals.missIs500 = false
  deals.objects.set('a', Buffer.from('content'))
  const data = temporaryFolder(t)
  return { deals, data, proxy: await startDealProxy(t, deals.gateway, { data }) }
}

/** An object whose class asks for a deal: its job, held. */
async function entered({ host }: DealProxy, cause: DealCause): Promise<Job> {
  const { store, jobs } = host.own
  const { stamp } = await store.head('fakes', 'a')
  const input: ObjectDealInput = { bucket: 'fakes', key: 'a', stamp, terms, cause }
  const job = await jobs.create({ kind: OBJECT_DEAL, resource: '/fakes/a', input, accessKeyId: '', held: true })
  await store.annotate('fakes', 'a', stamp, () => ({ storageClass: 'GLACIER', jobId: job.id }))
  return job
}

/** Lets a job begin that finds no gateway, and waits until it has found none. */
async function beginInVain({ host }: DealProxy, deals: ScriptedDeals, { id }: Job, down: Fate): Promise<void> {
  deals.down = down
  await host.own.jobs.release(id)
  await until('it waits', async () => (await host.own.jobs.get(id))?.progress.phase === 'WaitingForGateway')
}

/** Between two looks at what became of a deal the pauses are long. */
const ended = ({ host }: DealProxy, { id }: Job): Promise<Job> => host.own.jobs.wait(id, 120_000)

const archiveOf = async ({ host }: DealProxy) => (await host.own.store.head('fakes', 'a')).archive

const unavailable: Fate = { status: 503, body: 'down for maintenance' }

for (const [tokens, cause, down] of [
  [false, 'class', 'cut-before'],
  [false, 'lifecycle', unavailable],
  [true, 'class', unavailable],
  [true, 'lifecycle', 'cut-before'],
] as const)
  t.test(
    `${cause}, ${tokens ? 'with' : 'without'} tokens: a gateway that is down is asked again, also after a restart`,
    { buffered: true },
    async (t) => {
      const { deals, proxy, data } = await start(t, tokens)
      const job = await entered(proxy, cause)
      await beginInVain(proxy, deals, job, down)
      t.match(await proxy.host.own.jobs.get(job.id), { status: 'Active', failure: undefined })
      t.equal(
        await openSpending({ state: proxy.host.state, now: Date.now }).spentToday(),
        0n,
        'nothing is spent on what waits',
      )
      await proxy.close()
      const later = await startDealProxy(t, deals.gateway, { data })
      deals.down = undefined
      t.match(await archiveOf(later), { storageClass: 'GLACIER', jobId: job.id, facts: undefined })
      t.match(await ended(later, job), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal1' } } })
      t.equal(deals.made.length, 1)
    },
  )

t.test('what cannot be had any more is not waited for', { buffered: true }, async (t) => {
  const { deals, proxy } = await start(t, false)
  const gone = await entered(proxy, 'class')
  await beginInVain(proxy, deals, gone, unavailable)
  deals.objects.delete('a')
  deals.down = undefined
  t.match(await ended(proxy, gone), { status: 'Failed', failure: { code: 'NoSuchKey' } })

  deals.objects.set('a', Buffer.from('content'))
  deals.refusal = 'too cheap'
  const refused = await entered(proxy, 'class')
  await proxy.host.own.jobs.release(refused.id)
  t.match(await ended(proxy, refused), { status: 'Failed', failure: { code: 'DealRejected' } })
  t.match(await archiveOf(proxy), { facts: { 'deal-status': 'Failed' } })
  t.equal(deals.asked, 1)

  deals.down = unavailable
  const input: ObjectDealInput = { bucket: 'fakes', key: 'a', terms, cause: 'call' }
  const called = await proxy.host.own.jobs.create({ kind: OBJECT_DEAL, resource: '/', input, accessKeyId: '' })
  t.match(
    await ended(proxy, called),
    { status: 'Failed', failure: { code: 'ServiceUnavailable' } },
    'who calls is told',
  )
})

t.test('one that waits can be cancelled', { buffered: true }, async (t) => {
  const { deals, proxy, data } = await start(t, true)
  const job = await entered(proxy, 'class')
  await beginInVain(proxy, deals, job, unavailable)
  t.match(await proxy.host.own.jobs.cancel(job.id), { status: 'Cancelled' })
  await proxy.close()
  deals.down = undefined
  const later = await startDealProxy(t, deals.gateway, { data })
  await until('the gateway is asked', () => later.host.own.gateway.features())
  t.match(await later.host.own.jobs.get(job.id), { status: 'Cancelled' })
  t.equal(deals.asked, 0)
})

t.test('a deal whose answer was lost is looked for, not asked for again', { buffered: true }, async (t) => {
  const { deals, proxy } = await start(t, false)
  const job = await entered(proxy, 'class')
  deals.accidents.push('lost-after')
  await proxy.host.own.jobs.release(job.id)
  await until('nobody knows', async () => (await proxy.host.own.jobs.get(job.id))?.status === 'Unknown')
  t.match(await ended(proxy, job), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal1' } } })
  t.equal(deals.asked, 1)
})

t.test('a call that found no gateway is made again with the same token', { buffered: true }, async (t) => {
  const { deals, proxy } = await start(t, false)
  const { fate } = deals.gateway
  const call = () =>
    signedRequest(proxy.endpoint, owner, {
      ...{ method: 'POST', path: '/fakes/a', query: { 'x-deal': '', format: 'json' } },
      headers: { 'x-amz-client-token': 'of today', prefer: 'wait=60' },
      body: JSON.stringify({ MinerId: terms.minerId, Price: terms.price, DurationEpochs: terms.duration }),
    })
  deals.gateway.fate = (request) => (request.path.startsWith('/gateway/retrieve') ? unavailable : fate(request))
  const refused = await call()
  t.match(refused, { status: 503, body: /UpstreamUnavailable/ })
  deals.gateway.fate = fate
  const made = await call()
  t.match(JSON.parse(made.body), { Deal: { DealCid: 'bafydeal1' } })
  t.equal(made.headers['x-dealgate-job-id'], refused.headers['x-dealgate-job-id'], 'by the same job')
  t.equal((await call()).body, made.body)
  t.equal(deals.made.length, 1)
})

t.test('a bucket is retrieved by a job that outlasts a gateway that is down', { buffered: true }, async (t) => {
  const { deals, proxy } = await start(t, true)
  const input: RetrieveBucketInput = { bucket: 'fakes', prefix: '', days: 0, tier: 'Standard' }
  const asked = { kind: RETRIEVE_BUCKET, resource: '/fakes', input, accessKeyId: '', held: true }
  const job = await proxy.host.own.jobs.create(asked)
  await beginInVain(proxy, deals, job, unavailable)
  deals.down = undefined
  t.match(await ended(proxy, job), { status: 'Complete', result: { Restored: 0, Failed: 0 } })
})

t.test('pauses grow, and patience ends', async (t) => {
  const patience: Patience = { firstMs: 10, longestMs: 100, altogetherMs: 1000 }
  const { signal } = new AbortController()
  const down = new S3Error('ServiceUnavailable')
  const at = (now: number, times?: number, message = 'WaitingForGateway') =>
    patiently({ signal, ...(times !== undefined && { putOff: { message, times, since: 0 } }) }, down, now, patience)
  t.match(at(5000), { afterMs: 10, message: 'WaitingForGateway', cause: down })
  for (const [times, afterMs] of [
    [1, 20],
    [3, 80],
    [4, 100],
    [5000, 100],
  ] as const)
    t.match(at(999, times), { afterMs })
  t.equal(at(1000, 4), down)
  t.match(at(1000, 4, 'WaitingForBudget'), { afterMs: 10 }, 'what it waited for before does not count')
  for (const code of ['DealRejected', 'NoSuchKey', 'NotImplemented'] as const) {
    const refused = new S3Error(code)
    t.equal(patiently({ signal }, refused, 0, patience), refused, code)
  }
  const retry = new Retry(1, 'WaitingForBudget')
  t.equal(patiently({ signal }, retry, 0, patience), retry)
  t.equal(patiently({ signal: AbortSignal.abort() }, down, 0, patience), down)
})
