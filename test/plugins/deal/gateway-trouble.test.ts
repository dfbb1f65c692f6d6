import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { openSpending } from '../../../plugins/deal/deps.js'
import { type DealCause, OBJECT_DEAL, type ObjectDealInput } from '../../../plugins/deal/jobs/inputs.js'
import { patiently, type RetryTimes } from '../../../plugins/deal/records/sequence.js'
import type { Job } from '../../../src/api/jobs.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between, type Fate, type Passed } from '../../support/gateway/between.js'
import {
  type DealProxy,
  type Embedded,
  owner,
  startDealProxy,
  startEmbedded,
} from '../../support/plugins/deal-proxy.js'
import { signedCall, signedRequest, type TextAnswer } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ScriptedDeals } from './scripted-deals.js'

// Most of the time goes by in pauses before the gateway is asked what became of a deal.
t.jobs = 8

const terms = { MinerId: 't01000', Price: '0.0001', DurationEpochs: 518_400 }

/** Attofil: price times duration. */
const COST = 518_400n * 100_000_000_000_000n

interface Scene {
  readonly between: Between
  readonly proxy: DealProxy
  readonly gateway: Embedded
  /** Of this test alone: all tests of a mode share the gateway. */
  readonly bucket: string
  readonly path: string
}

const gateways = {
  full: startEmbedded(t, 'full'),
  legacy: startEmbedded(t, 'legacy'),
}

let buckets = 0

/** A proxy that reaches the gateway through a hop, and may spend what one deal costs. */
async function start(t: Test, mode: 'full' | 'legacy', deal: object = {}): Promise<Scene> {
  await farFromMidnight()
  const gateway = await gateways[mode]
  const between = await Between.start(t, gateway)
  const proxy = await startDealProxy(t, between, { deal: { maxSpendPerDay: '51.84', ...deal } })
  const bucket = `photos-${++buckets}`
  const scene = { between, proxy, gateway, bucket, path: `/${bucket}/a` }
  for (const [path, body] of [
    [`/${bucket}`, ''],
    [scene.path, 'content'],
  ] as const)
    t.equal((await signedRequest(proxy.endpoint, owner, { method: 'PUT', path, body })).status, 200)
  return scene
}

function ask({ proxy, path }: Scene, more: object = {}): Promise<TextAnswer> {
  const sending = { body: { ...terms, ...more }, headers: { prefer: 'wait=0' } }
  return signedCall(proxy.endpoint, owner, 'POST', `${path}?x-deal=&format=json`, sending)
}

/** The job of a deal that was asked for, once it is over. */
async function ended({ proxy }: Scene, answer: TextAnswer): Promise<Job> {
  const id = String(answer.headers['x-dealgate-job-id'])
  return proxy.host.own.jobs.wait(id, 120_000)
}

/** CIDs of the deals that the gateway and its network really have. */
async function dealsOf({ gateway, bucket }: Scene): Promise<string[]> {
  const answer = await gateway.calls.call({
    ...{ method: 'GET', endpoint: 'retrieve', bucket, key: 'a', access: 'read' },
    headers: { 'history-only': 'true' },
  })
  const { data } = answer.json as { data?: { deals?: { data: { dealCid: string } }[] } }
  return (data?.deals ?? []).map((deal) => deal.data.dealCid)
}

function spent({ proxy }: Scene): Promise<bigint> {
  return openSpending({ state: proxy.host.state, now: Date.now }).spentToday()
}

const isDeal = ({ method, path }: Passed) => method === 'POST' && path.startsWith('/gateway/deal/')
const page = '<!doctype html><html><body>Please wait while your browser is checked.</body></html>'
const html = (status: number, body = page) => ({ after: { status, type: 'text/html', body } })

/** What the hop answers to a deal that it has passed on and the gateway has made. */
const answers: Readonly<Record<string, Fate>> = {
  '400 with JSON of its own': { after: { status: 400, body: '{"status":"fail","message":"bad gateway"}' } },
  '401 without a body': html(401, ''),
  '404 with a page': html(404),
  '429 in the form of the gateway': { after: { status: 429, body: '{"data":"","status":"fail","message":"slow"}' } },
  '500 in the form of the gateway': { after: { status: 500, body: '{"data":"","status":"fail","message":"broken"}' } },
  '503': html(503),
  'a page with 200': html(200),
  'an empty body with 200': html(200, ''),
  'JSON of its own with 200': { after: { status: 200, body: '{"status":"error","message":"try later"}' } },
  'a cut connection': 'cut-after',
  nothing: 'silence-after',
}

/** One of each kind: a gateway with client tokens is asked again after each of them alike. */
const WITH_TOKENS = ['400 with JSON of its own', '429 in the form of the gateway', 'a page with 200', 'nothing']

for (const mode of ['full', 'legacy'] as const)
  for (const [what, fate] of Object.entries(answers).filter(
    ([name]) => mode === 'legacy' || WITH_TOKENS.includes(name),
  ))
    t.test(`${mode}: a hop passes the deal on and answers ${what}: paid once, capped, known`, async (t) => {
      const scene = await start(t, mode, fate === 'silence-after' ? { dealTimeoutSeconds: 3 } : {})
      const { between, proxy } = scene
      let told = false
      between.fate = (request): Fate => {
        if (told || !isDeal(request)) return 'pass'
        told = true
        return fate
      }
      const answer = await ask(scene)
      t.equal(answer.status, 202, answer.body)
      const id = String(answer.headers['x-dealgate-job-id'])
      await until('the deal is made and its outcome is unknown', async () => {
        const status = (await proxy.host.own.jobs.get(id))?.status
        if (status === 'Failed') throw new Error('a deal that was made must not count as failed')
        return status === 'Unknown' || status === 'Complete'
      })
      t.equal(await spent(scene), COST, 'the money stays reserved')
      const job = await ended(scene, answer)
      const made = await dealsOf(scene)
      t.match(job, { status: 'Complete', result: { Deal: { DealCid: made[0] } } }, JSON.stringify(job.failure))
      t.equal(made.length, 1, 'the gateway has made one deal')
      t.equal(await spent(scene), COST, 'and the ledger has one')
      // A gateway without client tokens makes a deal for each request: it is asked once.
      if (mode === 'legacy') t.equal(between.count('POST', '/gateway/deal/'), 1)
      t.match(await ended(scene, await ask(scene, { Force: true })), { failure: { code: 'SpendCapReached' } })
      t.equal((await dealsOf(scene)).length, 1, 'the cap holds')
    })

t.test('legacy: a token that is refused without a body is renewed, and the deal asked for again', async (t) => {
  const scene = await start(t, 'legacy')
  const { between } = scene
  let refusing = false
  between.fate = ({ path, body }): Fate => {
    if (path.endsWith('/webrpc')) refusing &&= !body.toString().includes('web.Login')
    else refusing ||= between.count('POST', '/gateway/deal/') === 1
    return refusing ? { status: 401, body: '' } : 'pass'
  }
  t.match(await ended(scene, await ask(scene)), { status: 'Complete' })
  t.equal(between.count('POST', '/gateway/deal/'), 2)
  t.equal((await dealsOf(scene)).length, 1)
})

t.test('a hop that answers 404 for the progress of a deal does not say that none was made', async (t) => {
  const scene = await start(t, 'full')
  const { between, proxy } = scene
  let up = false
  between.fate = (request): Fate => {
    if (up) return 'pass'
    if (isDeal(request)) return between.count('POST', '/gateway/deal/') > 1 ? html(503) : html(429)
    return request.path.startsWith('/gateway/dealprogress/') ? { status: 404, type: 'text/html', body: page } : 'pass'
  }
  const answer = await ask(scene)
  const id = String(answer.headers['x-dealgate-job-id'])
  await until('its outcome is unknown', async () => (await proxy.host.own.jobs.get(id))?.status === 'Unknown')
  const put = { method: 'PUT', path: scene.path, body: 'another content' }
  t.equal((await signedRequest(proxy.endpoint, owner, put)).status, 200)
  await until('it was asked', () => between.count('GET', '/gateway/dealprogress/') > 0)
  t.equal(await spent(scene), COST)
  up = true
  t.match(await ended(scene, answer), { status: 'Complete' })
  t.equal(await spent(scene), COST)
})

t.test(
  'an unknown deal whose object has gone is run again: the token still knows it, and the money stays',
  async (t) => {
    const scene = await start(t, 'full')
    const { between, proxy } = scene
    const { jobs } = proxy.host.own
    let up = false
    between.fate = (request): Fate => {
      if (up || !isDeal(request)) return 'pass'
      return between.count('POST', '/gateway/deal/') > 1 ? { status: 503, body: 'down' } : html(429)
    }
    const answer = await ask(scene)
    const id = String(answer.headers['x-dealgate-job-id'])
    await until('its outcome is unknown', async () => (await jobs.get(id))?.status === 'Unknown')
    t.equal((await dealsOf(scene)).length, 1)
    t.equal((await signedRequest(proxy.endpoint, owner, { method: 'DELETE', path: scene.path })).status, 204)
    const again = await signedRequest(proxy.endpoint, owner, { method: 'POST', path: `/-/jobs/v1/${id}/retry` })
    t.equal(again.status, 200, again.body)
    await until('it is unknown again', async () => (await jobs.get(id))?.status !== 'New')
    t.not((await jobs.get(id))?.status, 'Failed')
    t.equal(await spent(scene), COST)
    up = true
    t.match(await ended(scene, answer), { status: 'Complete', operation: OBJECT_DEAL })
    t.equal(await spent(scene), COST)
  },
)

const termsOfJob = { minerId: 'f01000', price: '0.000005', duration: 1000, verifiedDeal: false, fastRetrieval: true }

async function startScripted(t: Test, tokens: boolean) {
  const deals = await ScriptedDeals.start(t, { tokens })
  deals.missIs500 = false
  deals.objects.set('a', Buffer.from('content'))
  const data = temporaryFolder(t)
  return { deals, data, proxy: await startDealProxy(t, deals.gateway, { data }) }
}

/** An object whose class asks for a deal: its job, held. */
async function entered({ host }: DealProxy, cause: DealCause): Promise<Job> {
  const { store, jobs } = host.own
  const { revision } = await store.head('fakes', 'a')
  const input: ObjectDealInput = { bucket: 'fakes', key: 'a', stamp: revision, terms: termsOfJob, cause }
  const job = await jobs.create({ kind: OBJECT_DEAL, resource: '/fakes/a', input, accessKeyId: '', held: true })
  await store.annotate('fakes', 'a', revision, () => ({ storageClass: 'GLACIER', jobId: job.id }))
  return job
}

/** Lets a job begin that finds no gateway, and waits until it has found none. */
async function beginInVain({ host }: DealProxy, deals: ScriptedDeals, { id }: Job, down: Fate): Promise<void> {
  deals.down = down
  await host.own.jobs.release(id)
  await until('it waits', async () => (await host.own.jobs.get(id))?.progress.phase === 'WaitingForGateway')
}

/** Between two looks at what became of a deal the pauses are long. */
const endedJob = ({ host }: DealProxy, { id }: Job): Promise<Job> => host.own.jobs.wait(id, 120_000)
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
      const { deals, proxy, data } = await startScripted(t, tokens)
      const job = await entered(proxy, cause)
      await beginInVain(proxy, deals, job, down)
      t.match(await proxy.host.own.jobs.get(job.id), { status: 'Active', failure: undefined })
      t.equal(
        await openSpending({ state: proxy.host.state, now: Date.now }).spentToday(),
        0n,
        'what waits spends nothing',
      )
      await proxy.close()
      const later = await startDealProxy(t, deals.gateway, { data })
      deals.down = undefined
      t.match(await archiveOf(later), { storageClass: 'GLACIER', jobId: job.id, facts: undefined })
      t.match(await endedJob(later, job), { status: 'Complete', result: { Deal: { DealCid: 'bafydeal1' } } })
      t.equal(deals.made.length, 1)
    },
  )

t.test('a call that found no gateway is made again with the same token', { buffered: true }, async (t) => {
  const { deals, proxy } = await startScripted(t, false)
  const { fate } = deals.gateway
  const body = { MinerId: termsOfJob.minerId, Price: termsOfJob.price, DurationEpochs: termsOfJob.duration }
  const headers = { 'x-amz-client-token': 'of today', prefer: 'wait=60' }
  const call = () => signedCall(proxy.endpoint, owner, 'POST', '/fakes/a?x-deal=&format=json', { body, headers })
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

t.test('pauses grow, and patience ends', async (t) => {
  const patience: RetryTimes = { firstMs: 10, longestMs: 100, altogetherMs: 1000 }
  const { signal } = new AbortController()
  const down = new S3Error('ServiceUnavailable')
  const at = (now: number, times: number, message = 'WaitingForGateway') =>
    patiently({ signal, putOff: { message, times, since: 0 } }, down, now, patience)
  for (const [times, afterMs] of [
    [1, 20],
    [3, 80],
    [4, 100],
    [5000, 100],
  ] as const)
    t.match(at(999, times), { afterMs })
  t.equal(at(1000, 4), down)
  t.match(at(1000, 4, 'WaitingForBudget'), { afterMs: 10 }, 'what it waited for before does not count')
})
