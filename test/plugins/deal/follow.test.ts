import t, { type Test } from 'tap'
import { steady } from '../../../plugins/deal/deal-document.js'
import { OBJECT_DEAL } from '../../../plugins/deal/jobs/inputs.js'
import type { DealRecord } from '../../../plugins/deal/records/deal-record.js'
import { DealRecords } from '../../../plugins/deal/records/deal-records.js'
import type { Job } from '../../../src/api/jobs.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type DealProxy, startDealProxy } from '../../support/plugins/deal-proxy.js'
import { send } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'
import { ScriptedDeals } from './scripted-deals.js'
import { together } from './together.js'

const DAY = 86_400_000
const terms = { minerId: 'f01000', price: '0.000005', duration: 2880 * 100, verifiedDeal: false, fastRetrieval: true }

t.jobs = 8

async function dealt({ host }: DealProxy): Promise<Job> {
  const { id } = await host.own.jobs.create({
    kind: OBJECT_DEAL,
    resource: '/fakes/a.txt',
    input: { bucket: 'fakes', key: 'a.txt', terms, cause: 'call' },
    accessKeyId: '',
  })
  return until('the deal is made', async () => {
    const job = await host.own.jobs.get(id)
    return job?.status === 'Complete' && job
  })
}

/** Waits until the gateway was asked for the deal at `now`, ms since 1970. */
async function askedAt({ host }: DealProxy, dealCid: string, now: number): Promise<void> {
  const records = new DealRecords(host.state)
  await until('it was asked for', async () => ((await records.get(dealCid))?.live?.asked ?? 0) >= now)
}

/** The clocks of the server and of the network. */
class Clocks {
  #now = Date.now()
  #refused = new Set<string>()
  #ahead = false

  get now(): number {
    return this.#now
  }

  /**
   * A question that was asked by the old clock is not answered by the new one: the first question about each deal after
   * this fails, and is repeated.
   */
  advance(deals: ScriptedDeals, days: number): void {
    if (!this.#ahead) {
      this.#ahead = true
      const { fate } = deals.gateway
      deals.gateway.fate = (request) => {
        const dealCid = /\/dealstatus\/(.*)$/.exec(request.path)?.[1]
        if (dealCid === undefined || this.#refused.has(dealCid)) return fate(request)
        this.#refused.add(dealCid)
        return { status: 503, body: 'the clock was set' }
      }
    }
    this.#refused = new Set()
    this.#now += days * DAY
    deals.epoch += days * 2880
  }
}

async function start(t: Test, options: Parameters<typeof startDealProxy>[2] = {}, status = true) {
  const deals = await ScriptedDeals.start(t, { tokens: true, status })
  deals.objects.set('a.txt', Buffer.from('content'))
  const data = temporaryFolder(t)
  const proxy = await startDealProxy(t, deals.gateway, { data, deal: { statusIntervalSeconds: 1 }, ...options })
  const facts = async () => (await proxy.host.own.store.head('fakes', 'a.txt')).archive?.facts ?? {}
  const asked = () => deals.gateway.count('GET', '/gateway/dealstatus')
  return { deals, proxy, data, facts, asked }
}

together('the object tells what the network says of its deal, until nothing can change any more', async (t) => {
  const { deals, proxy, data, facts, asked } = await start(t)
  await dealt(proxy)
  t.match(await facts(), { 'deal-status': 'StorageDealCheckForAcceptance' })
  deals.state = 'StorageDealSealing'
  await until('it is sealing', async () => (await facts())['deal-status'] === 'StorageDealSealing')
  const expiry = (await facts())['deal-expiry'] ?? ''
  t.ok(Math.abs(Date.parse(expiry) - Date.now() - 100 * DAY) < 60_000, expiry)
  await proxy.close()
  deals.state = 'StorageDealError'
  const later = await startDealProxy(t, deals.gateway, { data, deal: { statusIntervalSeconds: 1 } })
  const told = async () => (await later.host.own.store.head('fakes', 'a.txt')).archive?.facts
  await until('it has failed, after a restart', async () => (await told())?.['deal-status'] === 'StorageDealError')
  const before = asked()
  await new Promise((resolve) => setTimeout(resolve, 2500))
  t.equal(asked(), before, 'and is not asked for again')
  t.match(await told(), { 'deal-cid': 'bafydeal1', 'deal-count': '1' })
  deals.state = 'StorageDealActive'
  await dealt(later)
  t.match(await told(), { 'deal-cid': 'bafydeal2', 'deal-count': '2', 'deal-status': 'StorageDealActive' })
})

together('a deal that was active and is slashed counts as both among what is known of its provider', async (t) => {
  const clocks = new Clocks()
  const { deals, proxy } = await start(t, { now: () => clocks.now })
  deals.providers.push({ miner_id: 'f01000' })
  deals.state = 'StorageDealActive'
  await dealt(proxy)
  const records = new DealRecords(proxy.host.state)
  const reported = (state: string) =>
    until(`it is ${state}`, async () => (await records.get('bafydeal1'))?.live?.state === state)
  await reported('StorageDealActive')
  deals.state = 'StorageDealSlashed'
  clocks.advance(deals, 2)
  await reported('StorageDealSlashed')
  const { body } = await send(proxy.server, { method: 'GET', target: '/-/deal/v1/providers?format=json' })
  t.match(JSON.parse(body.toString()).Providers, [
    { MinerId: 'f01000', Experience: { Deals: 1, Active: 1, Failed: 1, SecondsToActive: Number } },
  ])
})

together('an object that was replaced does not tell of the deal of another', async (t) => {
  const { deals, proxy, facts } = await start(t)
  await dealt(proxy)
  deals.objects.set('a.txt', Buffer.from('another content'))
  deals.state = 'StorageDealActive'
  const record = await until('the record says so', async () => {
    const found = await proxy.host.state.records<DealRecord>('deals').get('bafydeal1')
    return found?.live?.state === 'StorageDealActive' && found
  })
  t.equal(record.key, 'a.txt')
  t.same(await facts(), {})
})

together('nothing is asked of a gateway that does not tell states', async (t) => {
  const { proxy, facts, asked } = await start(t, {}, false)
  await dealt(proxy)
  await new Promise((resolve) => setTimeout(resolve, 2500))
  t.equal(asked(), 0)
  t.match(await facts(), { 'deal-status': 'Recorded' })
})

/** A deal that is active, in a bucket with this configuration, and the clocks by which it ends. */
async function startRenewing(t: Test, configuration: object) {
  const clocks = new Clocks()
  const { deals, proxy } = await start(t, { now: () => clocks.now })
  await proxy.host.settings.set('fakes', 'deal', configuration)
  deals.state = 'StorageDealActive'
  await dealt(proxy)
  const records = new DealRecords(proxy.host.state)
  await askedAt(proxy, 'bafydeal1', clocks.now)
  const advance = async (days: number) => {
    clocks.advance(deals, days)
    await askedAt(proxy, 'bafydeal1', clocks.now)
  }
  return { clocks, deals, proxy, records, advance }
}

together('a deal that ends soon is renewed once, where the bucket says so', async (t) => {
  const { clocks, deals, records, advance } = await startRenewing(t, { RenewBeforeDays: 10 })
  await advance(89)
  t.equal(deals.made.length, 1, 'there is time yet')
  clocks.advance(deals, 2)
  await until('it is renewed', () => deals.made.length === 2)
  await new Promise((resolve) => setTimeout(resolve, 2500))
  t.equal(deals.made.length, 2)
  const [first, second] = deals.made.map(({ record }) => ({ ...record, dealCid: '', timeStamp: '' }))
  t.same(second, first)
  t.ok((await records.get('bafydeal1'))?.renewedBy)
  t.match(await records.get('bafydeal2'), { cause: 'lifecycle' })
})

together('what another account paid for a deal is not what its renewal costs the owner', async (t) => {
  const owners = { MinerId: 'f01001', Price: '0.000001', DurationEpochs: 2880 * 200 }
  const { clocks, deals, proxy, advance } = await startRenewing(t, { RenewBeforeDays: 10, Terms: [owners] })
  await proxy.host.state
    .records<DealRecord>('deals')
    .change('bafydeal1', (record) => record && { ...record, account: 'another' })
  // A run that has read the record before this change may still decide about the renewal: the next one has read it
  // since.
  await advance(1)
  clocks.advance(deals, 90)
  await until('it is renewed', () => deals.made.length === 2)
  t.match(deals.made[1]?.record, { minerId: 'f01001', price: '0.000001', duration: 2880 * 200 })
})

together('a deal that is shorter than the days before its end is not followed by another at once', async (t) => {
  const { clocks, deals, advance } = await startRenewing(t, { RenewBeforeDays: 365 })
  await advance(49)
  await new Promise((resolve) => setTimeout(resolve, 2500))
  t.equal(deals.made.length, 1, 'before half of its time')
  clocks.advance(deals, 2)
  await until('it is renewed', () => deals.made.length === 2)
})

together('a renewal that came to nothing is made again on another day', async (t) => {
  const { clocks, deals, proxy, records, advance } = await startRenewing(t, { RenewBeforeDays: 10 })
  deals.states.set('bafydeal2', 'StorageDealError')
  clocks.advance(deals, 91)
  await until('it is renewed', () => deals.made.length === 2)
  const renewedBy = await until('it is on record', async () => (await records.get('bafydeal1'))?.renewedBy)
  await until('it is complete', async () => (await proxy.host.own.jobs.get(renewedBy))?.status === 'Complete')
  await until('it is known to have failed, and is not asked for any more', async () => {
    if ((await records.get('bafydeal2'))?.live?.state !== 'StorageDealError') return false
    for await (const { deal } of records.open()) if (deal.dealCid === 'bafydeal2') return false
    return true
  })
  await advance(0.5)
  t.equal(deals.made.length, 2, 'not on the same day')
  clocks.advance(deals, 1)
  await until('it is renewed again', () => deals.made.length === 3)
})

together('an error of one deal does not stop the others from being followed', async (t) => {
  const { deals, proxy } = await start(t)
  const { fate } = deals.gateway
  const broken = ['bafydeal1', 'bafydeal6']
  deals.gateway.fate = (request) =>
    broken.some((cid) => request.path.endsWith(`/dealstatus/${cid}`))
      ? { status: 500, body: 'the records of this deal are damaged' }
      : fate(request)
  for (let n = 0; n < 6; n++) await dealt(proxy)
  deals.state = 'StorageDealSealing'
  const records = new DealRecords(proxy.host.state)
  for (const n of [2, 3, 4, 5])
    await until('it is followed', async () => (await records.get(`bafydeal${n}`))?.live?.state === deals.state)
})

together('what follows from the end of a deal is done when it can be', async (t) => {
  const { deals, proxy, facts } = await start(t)
  await dealt(proxy)
  const { fate } = deals.gateway
  deals.gateway.fate = (request) =>
    request.path.includes('/dealstatus/') ? fate(request) : { status: 503, body: 'down' }
  deals.state = 'StorageDealError'
  const records = new DealRecords(proxy.host.state)
  await until('it is known', async () => (await records.get('bafydeal1'))?.live?.state === deals.state)
  deals.gateway.fate = fate
  await until('the object tells it', async () => (await facts())['deal-status'] === 'StorageDealError')
})

t.test('an expiry stays what it was first said to be, unless it has really moved', async (t) => {
  const epochMs = 30_000
  const first = { state: 'StorageDealActive', asked: 0, endEpoch: 5000, expires: 1_000_000_000 }
  const expiry = (more: object) => steady({ ...first, asked: 60_000, ...more }, first, epochMs).expires
  for (const expires of [first.expires + 29_999, first.expires - 29_999]) t.equal(expiry({ expires }), first.expires)
  const passed = first.expires - 3_600_000
  t.equal(expiry({ expires: passed }), passed, 'time was let pass')
  t.equal(expiry({ expires: first.expires + 1, endEpoch: 5001 }), first.expires + 1)
})
