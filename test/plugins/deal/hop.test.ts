import t, { type Test } from 'tap'
import { openSpending } from '../../../plugins/deal/deps.js'
import { OBJECT_DEAL } from '../../../plugins/deal/jobs/inputs.js'
import type { Job } from '../../../src/api/jobs.js'
import { Between, type Fate, type Passed } from '../../support/gateway/between.js'
import { signedRequest, type TextAnswer } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { type DealProxy, type Embedded, owner, startDealProxy, startEmbedded } from './proxy.js'

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
  return signedRequest(proxy.endpoint, owner, {
    method: 'POST',
    path,
    query: { 'x-deal': '', format: 'json' },
    headers: { 'content-type': 'application/json', prefer: 'wait=0' },
    body: JSON.stringify({ ...terms, ...more }),
  })
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
  '401 with a page': html(401),
  '401 without a body': html(401, ''),
  '403 with a page': html(403),
  '404 with a page': html(404),
  '405': html(405),
  '408': html(408, ''),
  '429': html(429, 'Too Many Requests'),
  '429 in the form of the gateway': { after: { status: 429, body: '{"data":"","status":"fail","message":"slow"}' } },
  '500 in the form of the gateway': { after: { status: 500, body: '{"data":"","status":"fail","message":"broken"}' } },
  '501': html(501),
  '503': html(503),
  'a page with 200': html(200),
  'an empty body with 200': html(200, ''),
  'plain words with 200': html(200, 'Bad Request'),
  'JSON of its own with 200': { after: { status: 200, body: '{"status":"error","message":"try later"}' } },
  'a cut connection': 'cut-after',
  nothing: 'silence-after',
}

for (const mode of ['full', 'legacy'] as const)
  for (const [what, fate] of Object.entries(answers))
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

for (const mode of ['full', 'legacy'] as const)
  t.test(`${mode}: what the gateway itself refuses costs nothing`, async (t) => {
    const scene = await start(t, mode)
    t.match(await ended(scene, await ask(scene, { MinerId: 't09999' })), {
      status: 'Failed',
      failure: { code: 'DealRejected' },
    })
    t.equal(await spent(scene), 0n)
    t.match(await ended(scene, await ask(scene)), { status: 'Complete' })
    t.equal((await dealsOf(scene)).length, 1)
    t.equal(await spent(scene), COST)
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
