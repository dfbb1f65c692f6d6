import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { DealDeps } from '../../../plugins/deal/deps.js'
import { BUCKET_DEAL, RUN_SCHEDULE } from '../../../plugins/deal/jobs/inputs.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import { retire } from '../../../plugins/deal/periodic/follower.js'
import { ScheduleRecords } from '../../../plugins/deal/periodic/schedule-records.js'
import { Scheduler } from '../../../plugins/deal/periodic/scheduler.js'
import { type BackupSchedule, latestDue } from '../../../plugins/deal/periodic/schedules.js'
import type { DealRecord } from '../../../plugins/deal/records/deal-record.js'
import type { Job } from '../../../src/api/jobs.js'
import { openState } from '../../../src/state/open-state.js'
import { redis } from '../../src/state/servers.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type DealProxy, owner, startDealProxy } from '../../support/plugins/deal-proxy.js'
import { signedCall } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { ScriptedDeals } from './scripted-deals.js'
import { together } from './together.js'

t.jobs = 6

const HOUR = 3_600_000
const DAY = 24 * HOUR
const BUCKET = 'fakes'
const terms = { MinerId: 'f01000', Price: '0.000005', DurationEpochs: 2880 * 100 }
const nightly = { Id: 'nightly', Cron: '0 3 * * *' }
const at = (text: string) => Date.parse(text)

/** Runs the scheduler once. The one of the server itself looks so seldom that a test sees it at the start alone. */
function look({ host }: DealProxy, options: object = {}): Promise<void> {
  const parts = new DealDeps(dealOptions.parse({ maxSpendPerDay: 'none', maxTimesAsk: 'none', ...options }), host)
  return new Scheduler(parts).work.run({ signal: new AbortController().signal, mayGoOn: () => true })
}

class Backups {
  now = at('2026-11-22T00:00:00Z')
  readonly deals: ScriptedDeals
  proxy!: DealProxy

  constructor(deals: ScriptedDeals) {
    this.deals = deals
  }

  static async start(t: Test, deal: object = {}): Promise<Backups> {
    const deals = await ScriptedDeals.start(t, { tokens: true })
    for (const key of ['logs-a', 'logs-b', 'other']) deals.objects.set(key, Buffer.from(`the bytes of ${key}`))
    const backups = new Backups(deals)
    const data = temporaryFolder(t)
    backups.proxy = await startDealProxy(t, deals.gateway, {
      data,
      now: () => backups.now,
      deal: { scheduleIntervalSeconds: 3600, ...deal },
    })
    return backups
  }

  configure(Schedules: readonly object[], more: object = {}) {
    const sending = { body: { Terms: [terms], Schedules, ...more }, headers: { accept: 'application/xml' } }
    return signedCall(this.proxy.endpoint, owner, 'POST', `/${BUCKET}?x-deal-config=`, sending)
  }

  async jobs(): Promise<Job[]> {
    const all = await this.proxy.host.own.jobs.list({ limit: 100 })
    return all.filter(({ operation }) => operation === BUCKET_DEAL || operation === RUN_SCHEDULE).reverse()
  }

  /** The jobs of backups once all have ended, the oldest first. */
  ended(count: number): Promise<Job[]> {
    return until(`${count} backups have ended`, async () => {
      const jobs = await this.jobs()
      return jobs.length === count && jobs.every(({ status }) => ['Complete', 'Failed'].includes(status)) && jobs
    })
  }

  /** One backup of each of these times, one after the other. */
  async backUpAt(...times: string[]): Promise<Job[]> {
    let jobs: Job[] = []
    for (const time of times) {
      this.now = at(time)
      const before = (await this.jobs()).length
      await look(this.proxy)
      jobs = await this.ended(before + 1)
    }
    await look(this.proxy)
    return jobs
  }

  records(): Promise<DealRecord[]> {
    return Promise.all(this.deals.made.map(({ record }) => this.parts.deals.get(record.dealCid ?? ''))).then((found) =>
      found.filter((deal) => deal !== undefined),
    )
  }

  get parts(): DealDeps {
    return new DealDeps(dealOptions.parse({}), this.proxy.host)
  }
}

t.test('the times of cron expressions', async (t) => {
  const times = (Cron: string, TimeZone?: string) => ({ Cron, ...(TimeZone && { TimeZone }) })
  const due = (time: string, cron: string, zone?: string) => {
    const found = latestDue(times(cron, zone), at(time))
    return found && new Date(found).toISOString().slice(0, 16)
  }
  t.equal(due('2026-11-22T03:00:00.000Z', '0 3 * * *'), '2026-11-22T03:00', 'at its very time')
  t.equal(due('2026-11-22T02:59:59.999Z', '0 3 * * *'), '2026-11-21T03:00')
  t.equal(due('2026-11-22T12:00:00Z', '30 4 * * MON-FRI'), '2026-11-20T04:30')
  t.equal(due('2026-11-22T12:00:00Z', '0 3 * * *', 'America/New_York'), '2026-11-22T08:00')
  t.equal(due('2026-03-29T12:00:00Z', '30 2 * * *', 'Europe/Berlin'), '2026-03-29T01:00', 'there is no half past two')
  const autumn = Array.from({ length: 48 }, (_, i) =>
    latestDue(times('30 2 * * *', 'Europe/Berlin'), at('2026-10-24T22:00Z') + i * 600_000),
  )
  t.equal(new Set(autumn).size, 2, 'half past two comes twice, and counts once')
})

together('a schedule that cannot work is refused when it is set, and nothing changes', async (t) => {
  const backups = await Backups.start(t)
  t.equal((await backups.configure([nightly])).status, 200)
  const Tags = ['1', '2'].map((Value) => ({ Key: 'a', Value }))
  for (const [schedules, says] of [
    [[nightly, { ...nightly, Cron: '0 4 * * *' }], /two schedules with the Id nightly/],
    [[{ Id: 'a', Cron: '0 3 30 2 *' }], /never due/],
    [[{ Id: 'a', Cron: '61 * * * *' }], /minute/],
    [[{ Id: 'a', Cron: '0 0 3 * * *' }], /five fields/],
    [[{ ...nightly, TimeZone: 'Nowhere' }], /not a time zone/],
    [[{ ...nightly, Id: 'a b' }], /Id/],
    [[{ ...nightly, Kind: 'sometimes' }], /Kind/],
    [[{ ...nightly, KeepGenerations: 0 }], /KeepGenerations/],
    [[{ ...nightly, Filter: {} }], /Filter.*empty/],
    [[{ ...nightly, Filter: { Tags } }], /two tags/],
    [[{ ...nightly, Every: 'day' }], /Every/],
    [Array.from({ length: 21 }, (_, i) => ({ ...nightly, Id: `s${i}` })), /20/],
  ] as const) {
    const { status, code, body } = await backups.configure(schedules)
    t.match({ status, code, body }, { status: 400, code: 'InvalidArgument', body: says }, String(says))
  }
  t.match(await backups.configure([nightly], { Terms: undefined }), { status: 400, code: 'DealTermsRequired' })
  const read = await signedCall(backups.proxy.endpoint, owner, 'GET', `/${BUCKET}?x-deal-config=&format=json`)
  t.same(JSON.parse(read.body).Schedules, [nightly])
})

together('each due time has one backup, and missed ones have one together', async (t) => {
  const backups = await Backups.start(t)
  await backups.configure([nightly])
  await look(backups.proxy)
  t.same(await backups.jobs(), [], 'what was due before the schedule was set is left out')

  backups.now = at('2026-11-22T03:00:00Z')
  await Promise.all([look(backups.proxy), look(backups.proxy), look(backups.proxy)])
  const [first] = await backups.ended(1)
  t.match(first, { operation: BUCKET_DEAL, status: 'Complete', resource: `/${BUCKET}`, accessKeyId: '' })
  t.match(first?.input, { cause: 'schedule', generation: { schedule: 'nightly', due: backups.now } })
  backups.now += 23 * HOUR
  await look(backups.proxy)
  t.equal(backups.deals.made.length, 1, 'it is not due yet')

  await backups.backUpAt('2026-11-23T03:00:10Z', '2026-11-27T12:00:00Z')
  const jobs = await backups.ended(3)
  t.same(
    jobs.map(({ input }) => (input as { generation: { due: number } }).generation.due),
    ['2026-11-22T03:00Z', '2026-11-23T03:00Z', '2026-11-27T03:00Z'].map(at),
    'the latest of the missed times stands for all',
  )
  t.match((await backups.records()).at(-1), { cause: 'schedule', generation: { schedule: 'nightly' } })
})

together('a schedule that is disabled, changed or removed leaves out what was due meanwhile', async (t) => {
  const backups = await Backups.start(t)
  await backups.configure([{ ...nightly, Enabled: false }])
  backups.now += DAY
  await look(backups.proxy)
  await backups.configure([nightly])
  await look(backups.proxy)
  backups.now += DAY
  await backups.configure([{ ...nightly, Cron: '0 2 * * *' }])
  await look(backups.proxy)
  await backups.configure([])
  backups.now += DAY
  await look(backups.proxy)
  const left: unknown[] = []
  for await (const [, record] of new ScheduleRecords(backups.proxy.host.state).all()) left.push(record)
  t.same(left, [], 'nothing is remembered of a schedule that was removed')
  await backups.configure([nightly])
  await look(backups.proxy)
  t.same(await backups.jobs(), [])
  await backups.backUpAt('2026-11-26T03:00:00Z')
  t.equal(backups.deals.made.length, 1)
})

together('a server that dies as a backup begins does not begin it twice', async (t) => {
  const backups = await Backups.start(t)
  await backups.configure([nightly])
  const records = backups.proxy.host.state.records('deal-schedules')
  const images: [string, object][] = []
  for await (const [key, record] of records.entries()) images.push([key, record as object])
  await backups.backUpAt('2026-11-22T03:00:00Z')
  // As it was just before the job was on record with the schedule.
  for (const [key, record] of images) await records.set(key, record)
  await look(backups.proxy)
  t.equal((await backups.jobs()).length, 1, 'the job has the same token')
  t.equal(backups.deals.made.length, 1)
  await backups.backUpAt('2026-11-23T03:00:00Z')
  t.equal(backups.deals.made.length, 2)
})

together('a backup that runs keeps the next one waiting', async (t) => {
  const backups = await Backups.start(t)
  await backups.configure([nightly])
  let finish = () => {}
  backups.deals.beforeAnswer = () => new Promise((resolve) => (finish = resolve))
  backups.now = at('2026-11-22T03:00:00Z')
  await look(backups.proxy)
  await until('the deal is requested', () => backups.deals.made.length === 1)
  backups.now += 2 * DAY
  await look(backups.proxy)
  t.equal((await backups.jobs()).length, 1)
  backups.deals.beforeAnswer = async () => {}
  finish()
  await backups.ended(1)
  await look(backups.proxy)
  const jobs = await backups.ended(2)
  t.match(jobs[1]?.input, { generation: { due: at('2026-11-24T03:00Z') } })
})

together('the daily caps hold for backups', async (t) => {
  // A deal costs 1.44 fil.
  const backups = await Backups.start(t, { maxSpendPerDay: '2' })
  const other = { Id: 'other', Cron: '0 4 * * *' }
  await backups.configure([nightly, other])
  await backups.backUpAt('2026-11-22T03:00:00Z')
  backups.now = at('2026-11-22T04:00:00Z')
  await look(backups.proxy)
  const waiting = await until('it waits', async () => {
    const [, job] = await backups.jobs()
    return job?.progress.phase === 'WaitingForBudget' && job
  })
  t.equal(waiting?.status, 'Active')
  t.equal(backups.deals.made.length, 1)
  backups.now = at('2026-11-23T00:00:02Z')
  await backups.proxy.host.own.jobs.wake(waiting?.id ?? '')
  t.match(await backups.ended(2), [{ status: 'Complete' }, { status: 'Complete' }])

  const dear = await Backups.start(t, { maxSpendPerDay: '1' })
  await dear.configure([nightly])
  const [failed] = await dear.backUpAt('2026-11-22T03:00:00Z')
  t.match(failed, { status: 'Failed', failure: { code: 'SpendCapReached' } }, 'no other day has room for it')
})

together('a filter selects objects by prefix and tags', async (t) => {
  const backups = await Backups.start(t)
  const { store } = backups.proxy.host.own
  const origin = { requestId: '', accessKeyId: '', remoteAddress: '' }
  for (const key of ['logs-a', 'other'])
    await store.setTags(BUCKET, key, [{ key: 'keep', value: 'yes' }], { name: 'ObjectTagging:Put', origin })
  const Tags = [{ Key: 'keep', Value: 'yes' }]
  for (const [Filter, keys] of [
    [{ Prefix: 'logs-' }, ['logs-a', 'logs-b']],
    [{ Tags }, ['logs-a', 'other']],
    [{ Prefix: 'logs-', Tags }, ['logs-a']],
    [{ Tags: [{ Key: 'keep', Value: 'no' }] }, []],
  ] as const) {
    await backups.configure([{ ...nightly, Filter }])
    const before = backups.deals.made.length
    backups.now += DAY
    const jobs = await backups.backUpAt(new Date(backups.now).toISOString())
    t.match(jobs.at(-1), { operation: RUN_SCHEDULE, status: 'Complete' })
    t.match(jobs.at(-1)?.result, { Schedule: 'nightly', Made: keys.length, Gone: 0, Failed: 0, Failures: [] })
    const made = backups.deals.made.slice(before).map(({ subject }) => subject)
    t.same(
      made.sort(),
      keys.map((key) => `${BUCKET}/${key}`),
    )
  }
})

together('what is refused for one object is told, and the others have their deals', async (t) => {
  const backups = await Backups.start(t)
  await backups.configure([{ ...nightly, Filter: { Prefix: 'logs-' }, KeepGenerations: 1 }])
  const { fate } = backups.deals.gateway
  const refusal = { status: 200, body: '{"data":{},"status":"fail","message":"too small"}' }
  backups.deals.gateway.fate = (request) =>
    request.path === `/gateway/deal/${BUCKET}/logs-b` ? refusal : fate(request)
  const [job] = await backups.backUpAt('2026-11-22T03:00:00Z')
  t.match(job?.result, {
    Made: 1,
    Failed: 1,
    Failures: [{ Key: 'logs-b', Code: 'DealRejected', Message: 'too small' }],
  })
  const record = await new ScheduleRecords(backups.proxy.host.state).get(BUCKET, 'nightly')
  t.same(record?.complete, [], 'a backup that lacks an object is not complete')
})

together('old generations are given up, but never what may be the last copy', async (t) => {
  const backups = await Backups.start(t)
  backups.deals.state = 'StorageDealActive'
  const filtered: BackupSchedule = { ...nightly, KeepGenerations: 2, Filter: { Prefix: 'logs-' } }
  await backups.configure([filtered, { Id: 'whole', Cron: '0 3 * * *', KeepGenerations: 1 }])
  const times = ['2026-11-22T03:00:00Z', '2026-11-23T03:00:00Z', '2026-11-24T03:00:00Z']
  for (const [i, time] of times.entries()) {
    backups.now = at(time)
    await look(backups.proxy)
    await backups.ended(2 * (i + 1))
    await look(backups.proxy)
    // Later states of logs-b are other objects.
    if (i === 0) backups.deals.objects.set('logs-b', Buffer.from('other bytes'))
  }
  const { parts } = backups
  const retired = async () => {
    for (const deal of await backups.records()) await retire(parts, deal)
    const of = (deals: DealRecord[], key: string | undefined) =>
      deals.filter((deal) => deal.key === key).map(({ retired }) => retired !== undefined)
    const deals = await backups.records()
    return { a: of(deals, 'logs-a'), b: of(deals, 'logs-b'), whole: of(deals, undefined) }
  }
  const { store } = backups.proxy.host.own
  const { revision } = await store.head(BUCKET, 'logs-a')
  const newest = (await backups.records()).filter(({ key }) => key === 'logs-a').slice(1)
  for (const { deal } of newest) await parts.deals.setDoubted(deal.dealCid, backups.now)
  t.same(
    await retired(),
    { a: [false, false, false], b: [true, false, false], whole: [true, true, false] },
    'newer deals for the object do not deliver it',
  )
  for (const { deal } of newest) await parts.deals.setVerified(deal.dealCid, backups.now)
  t.same((await retired()).a, [true, false, false])
  const open: string[] = []
  for await (const { deal } of parts.deals.open()) open.push(deal.dealCid)
  t.equal(open.length, 2 + 2 + 1, 'the others are still monitored')
  const [old] = (await backups.records()).filter(({ key }) => key === 'logs-a')
  const told = await signedCall(backups.proxy.endpoint, owner, 'GET', `/-/deal/v1/deals/${old?.deal.dealCid}`)
  t.match(JSON.parse(told.body), {
    ...{ Cause: 'schedule', Schedule: 'nightly', Due: '2026-11-22T03:00:00Z', RetiredAt: '2026-11-24T03:00:00Z' },
  })
  t.equal(old?.revision, revision)
})

t.test('two servers on one state begin one backup', { skip: redis.skip, buffered: true }, async (t) => {
  const server = await redis.start()
  t.teardown(() => server.stop())
  const deals = await ScriptedDeals.start(t, { tokens: true })
  deals.objects.set('a', Buffer.from('content'))
  let now = at('2026-11-22T00:00:00Z')
  const proxies = await Promise.all(
    [1, 2].map(async () => {
      const log = createLogger({ level: 'silent' })
      const state = await openState({ data: temporaryFolder(t), url: server.url, log })
      const proxy = await startDealProxy(t, deals.gateway, { state, now: () => now })
      t.teardown(() => state.close())
      return proxy
    }),
  )
  const [one] = proxies as [DealProxy, DealProxy]
  await one.host.settings.set(BUCKET, 'deal', { Terms: [terms], Schedules: [nightly] })
  await look(one)
  for (let night = 1; night <= 5; night++) {
    now = at('2026-11-22T03:00:00Z') + night * DAY
    await Promise.all(proxies.flatMap((proxy) => [look(proxy), look(proxy)]))
    // A server indexes the jobs of others only after a while.
    const { last } = await until('the backup has a job', async () => {
      const record = await new ScheduleRecords(one.host.state).get(BUCKET, 'nightly')
      return record?.last?.due === now && record
    })
    await until('the backup is made', async () => {
      const job = await one.host.own.jobs.get(last?.jobId ?? '')
      return job?.status === 'Complete'
    })
  }
  t.equal(deals.made.length, 5)
  t.equal(deals.asked, 5)
})
