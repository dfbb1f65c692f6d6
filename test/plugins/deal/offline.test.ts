import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { DealDeps, openSpending } from '../../../plugins/deal/deps.js'
import { OFFLINE_DEAL } from '../../../plugins/deal/jobs/inputs.js'
import type { TaskRecord } from '../../../plugins/deal/offline/task-records.js'
import { dealOptions } from '../../../plugins/deal/options.js'
import { Scheduler } from '../../../plugins/deal/periodic/scheduler.js'
import type { Identity } from '../../../src/api/identity.js'
import type { Job } from '../../../src/api/jobs.js'
import type { PluginServices } from '../../../src/api/plugin.js'
import type { Fate, Passed } from '../../support/gateway/between.js'
import { type DealProxy, owner, startDealProxy } from '../../support/plugins/deal-proxy.js'
import { signedCall, signedRequest } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { ScriptedDeals } from './scripted-deals.js'
import { together } from './together.js'

t.jobs = 6

const terms = { MinerId: 'f01000', MaxPrice: '0.00000001', DurationEpochs: 518_400 }

/** May list deals, of other buckets. */
const reader = {
  accessKeyId: 'reader',
  secretAccessKey: 'reader-secret-key',
  rights: [{ bucket: 'elsewhere', access: 'read' }],
  actions: ['deal:*'],
} as const

interface Posted {
  readonly token: string | undefined
  readonly body: Record<string, string>
  readonly data: { readonly taskname: string; readonly filename: string; readonly uuid: string }
}

/** A gateway that posts tasks, in the test's hands. */
class Offline {
  readonly deals: ScriptedDeals
  readonly posted: Posted[] = []
  /** Fate of each request for an offline deal, instead of an answer; then none. */
  readonly accidents: ('lost-before' | 'lost-after')[] = []
  /** The platform's refusal, which public gateways report within a success. */
  refusal: string | undefined
  asked = 0
  now = Date.parse('2026-11-22T00:00:00Z')
  proxy!: DealProxy
  readonly #known: boolean

  private constructor(deals: ScriptedDeals, known: boolean) {
    this.deals = deals
    this.#known = known
  }

  static async start(
    t: Test,
    { known = true, deal = {}, offers = {} }: { known?: boolean; deal?: object; offers?: PluginServices } = {},
  ): Promise<Offline> {
    const deals = await ScriptedDeals.start(t, { tokens: known, more: known ? ['offline-deals'] : [] })
    deals.objects.set('a', Buffer.alloc(1000))
    deals.objects.set('b', Buffer.alloc(1000))
    const offline = new Offline(deals, known)
    const { fate } = deals.gateway
    deals.gateway.fate = (request) => offline.#fate(request) ?? fate(request)
    offline.proxy = await startDealProxy(t, deals.gateway, {
      now: () => offline.now,
      offers,
      identities: [owner, reader],
      deal: { scheduleIntervalSeconds: 3600, ...deal },
    })
    return offline
  }

  #fate(request: Passed): Fate | undefined {
    if (!request.path.startsWith('/gateway/offlinedeals/')) return undefined
    if (request.method === 'GET') return this.#state(new URL(request.path, 'http://gateway').searchParams.get('uuid'))
    this.asked++
    const accident = this.accidents.shift()
    if (accident === 'lost-before') return 'cut-before'
    if (this.refusal !== undefined)
      return answer({ bucket_name: 'fakes', deals: { data: {}, status: 'fail', message: this.refusal } })
    const token = this.#known ? (request.headers['x-cloud-client-token'] as string) : undefined
    const earlier = token === undefined ? undefined : this.posted.find((one) => one.token === token)
    const posted = earlier ?? this.#post(token, JSON.parse(request.body.toString()))
    if (accident === 'lost-after') return 'cut-before'
    return answer({
      bucket_name: 'fakes',
      deals: { data: posted.data, status: 'success', message: 'A mail was sent.' },
    })
  }

  #post(token: string | undefined, body: Record<string, string>): Posted {
    const uuid = randomUUID()
    const posted = { token, body, data: { taskname: body.Task_Name ?? '', filename: `${uuid}.csv`, uuid } }
    this.posted.push(posted)
    return posted
  }

  #state(uuid: string | null): Fate {
    if (!this.posted.some(({ data }) => data.uuid === uuid))
      return { status: 404, body: '{"data":null,"status":"fail","message":"There is no such task."}' }
    const deal = {
      ...{ deal_id: '7', deal_cid: 'bafyoffline', status: 'DealActive', note: '', miner_fid: 'f01000' },
      ...{ payload_cid: 'bafydata', piece_cid: 'baga', piece_size: '4096', start_epoch: 10, end_epoch: null },
    }
    return answer({ uuid, task_status: 'Completed', deals: [deal] })
  }

  async call(method: string, subresource: string, body?: object, headers: Record<string, string> = {}) {
    const target = `/fakes?${subresource}=&format=json`
    const told = await signedCall(this.proxy.endpoint, owner, method, target, { body, headers })
    // biome-ignore lint/suspicious/noExplicitAny: tests look at documents of any shape
    const json = JSON.parse(told.body) as any
    return { ...told, json, code: json.Code ?? '' }
  }

  order(body: object, token: string = randomUUID(), wait = 60) {
    return this.call('POST', 'x-deal-offline', body, { 'x-amz-client-token': token, prefer: `wait=${wait}` })
  }

  async jobs(): Promise<Job[]> {
    return this.proxy.host.own.jobs.list({ limit: 100, matches: ({ operation }) => operation === OFFLINE_DEAL })
  }

  async deal(dealCid: string, keys: Pick<Identity, 'accessKeyId' | 'secretAccessKey'> = owner) {
    const { body } = await signedRequest(this.proxy.endpoint, keys, {
      method: 'GET',
      path: `/-/deal/v1/deals/${dealCid}`,
    })
    const json = JSON.parse(body)
    return { json, code: json.Code ?? '' }
  }

  job(status: Job['status']): Promise<Job> {
    return until(`the job is ${status}`, async () => (await this.jobs()).find((job) => job.status === status))
  }

  spent(): Promise<bigint> {
    return openSpending({ state: this.proxy.host.state, now: () => this.now }).spentToday()
  }
}

function answer(data: object): Fate {
  return { status: 200, body: JSON.stringify({ data, status: 'success', message: '' }) }
}

together('an offline deal is a task, whose state the list of the bucket tells', async (t) => {
  const offline = await Offline.start(t)
  // More than a page of a listing has: each of them is told its task.
  const many = Array.from({ length: 120 }, (_, n) => `a-${1000 + n}`)
  for (const key of many) offline.deals.objects.set(key, Buffer.from('a'))
  const more = { TaskName: 'nightly', Description: 'all', Tags: ['eu', 'backup'], ExpireDays: 4, Prefix: 'a' }
  const made = await offline.order({ ...terms, ...more }, 'once')
  t.equal(made.status, 200, made.body)
  const [posted] = offline.posted
  t.match(made.json, {
    ...{ Bucket: 'fakes', Prefix: 'a', Message: 'A mail was sent.' },
    Task: { TaskName: 'nightly', TaskFileName: posted?.data.filename, TaskUuid: posted?.data.uuid },
  })
  t.same(posted?.body, {
    ...{ Task_Name: 'nightly', Curated_Dataset: '', Description: 'all', Is_Public: '0', Type: 'regular' },
    ...{ Miner_Id: 'f01000', Min_Price: '0', Max_Price: '0.00000001', Tags: 'eu,backup', Expire_Days: '4' },
    ...{ Duration: '518400', Fast_Retrieval: '1', Prefix: 'a', Max_Piece_Bytes: '65536' },
  })
  t.match(posted?.token, /^[0-9a-f]{64}$/, 'made of the client token alone')
  t.equal((await offline.order({ ...terms, ...more }, 'once')).json.JobId, made.json.JobId, 'the same token')
  const facts = { 'task-uuid': posted?.data.uuid }
  for (const key of ['a', 'a-1000', 'a-1119'])
    t.match(await offline.proxy.host.own.store.head('fakes', key), { archive: { facts } }, key)
  t.equal((await offline.deal('bafyoffline')).code, 'NoSuchDeal', 'its deals are not known yet')
  t.equal(offline.asked, 1)
  const listed = await offline.call('GET', 'x-deal-offline')
  t.match(listed.json.OfflineDeal, [
    {
      ...{ JobId: made.json.JobId, Cause: 'call', TaskStatus: 'Completed', Task: { TaskName: 'nightly' } },
      Deals: [{ DealId: '7', DealCid: 'bafyoffline', Status: 'DealActive', PieceSize: 4096, StartEpoch: 10 }],
    },
  ])
  t.match((await offline.deal('bafyoffline')).json, {
    ...{ Bucket: 'fakes', JobId: made.json.JobId, Cause: 'call', TaskUuid: posted?.data.uuid },
    ...{ DealCid: 'bafyoffline', DataCid: 'bafydata', MinerId: 'f01000' },
  })
  t.equal((await offline.deal('bafyoffline', reader)).code, 'NoSuchDeal', 'for whom may not read the bucket')
  t.equal((await offline.deal('bafyother')).code, 'NoSuchDeal')

  const own = { Task_Name: 'own', Is_Public: '1', Max_Price: '1e-8', Expire_Days: '4', Auto_bid: '1', Type: 'verified' }
  t.equal((await offline.order(own)).status, 200, 'the spellings of the gateway')
  t.match(offline.posted[1]?.body, { Is_Public: '1', Auto_bid: '1', Type: 'verified', Duration: '1512000' })
  t.notOk('Miner_Id' in (offline.posted[1]?.body ?? {}))
})

together('terms that do not fit together are told all at once, and nothing is posted', async (t) => {
  const offline = await Offline.start(t)
  for (const [body, ...violations] of [
    [{ MaxPrice: '1' }, /AutoBid is missing/],
    [{ ...terms, IsPublic: '1', AutoBid: '1' }, /MinerId belongs to a private task/],
    [{ ...terms, IsPublic: '0', MinerId: undefined }, /MinerId is missing/],
    [{ ...terms, Tags: ['1', '2', '3', '4', '5', '6'] }, /6 Tags/],
    [{ ...terms, Tags: ['a,b'] }, /comma/],
    [{ ...terms, MinPrice: '1', Type: 'other', ExpireDays: 0 }, /Type/, /MinPrice must not/, /ExpireDays/],
    [{ ...terms, DurationEpochs: 10 }, /DurationEpochs/],
  ] as const) {
    const { status, code, json } = await offline.order(body)
    t.match({ status, code }, { status: 400, code: 'DealTermsInvalid' }, JSON.stringify(body))
    for (const violation of violations) t.match(json.Message, violation)
  }
  t.equal((await offline.order({ ...terms, Prefix: 'nothing/' })).code, 'BucketEmpty')
  t.equal((await offline.order({ ...terms, Colour: 'blue' })).code, 'InvalidArgument')
  t.equal(offline.asked, 0)
})

together('when the answer is lost, the job is unknown until the gateway names the task', async (t) => {
  const offline = await Offline.start(t)
  offline.accidents.push('lost-after')
  await offline.order(terms, 'lost', 0)
  const job = await offline.job('Complete')
  t.equal(offline.posted.length, 1, 'and no second one is posted')
  t.match(job.result, { Task: { TaskUuid: offline.posted[0]?.data.uuid } })
  t.ok(offline.asked > 1)
})

together('a task whose server died before it was listed is on the list once the job has settled', async (t) => {
  const listed: object[] = []
  const offers: PluginServices = { tasks: { remember: async (task) => void listed.push(task) } }
  const offline = await Offline.start(t, { known: false, offers })
  offline.accidents.push('lost-before')
  await offline.order(terms, 'died', 0)
  const { id } = await offline.job('Unknown')
  t.same(listed, [])
  const records = offline.proxy.host.state.records<TaskRecord>('deal-tasks')
  const task = { uuid: 'u-1', taskName: 'n', fileName: 'f.csv', message: '', made: offline.now }
  await records.change(id, (record) => record && { ...record, task })
  t.match((await offline.job('Complete')).result, { Task: { TaskUuid: 'u-1' } })
  t.match(listed, [{ jobId: id, bucket: 'fakes', uuid: 'u-1', file: 'f.csv' }])
})

together('a gateway without tokens is never asked twice', async (t) => {
  const offline = await Offline.start(t, { known: false })
  offline.accidents.push('lost-after')
  const { status } = await offline.order(terms, 'lost', 0)
  t.equal(status, 202)
  const job = await offline.job('Unknown')
  t.ok((await offline.spent()) > 0n, 'the money stays reserved')
  await offline.proxy.host.own.jobs.resolve(job.id, { result: {} })
  t.equal(offline.asked, 1)
})

together('a refusal within a success is a refusal, and costs nothing', async (t) => {
  const offline = await Offline.start(t, { known: false })
  offline.refusal = 'the token has expired'
  const { status, code, body } = await offline.order(terms)
  t.match({ status, code, body }, { status: 409, code: 'DealRejected', body: /the token has expired/ })
  t.equal(await offline.spent(), 0n)
  offline.refusal = undefined
  t.equal((await offline.order(terms)).status, 200)
  t.notOk('Max_Piece_Bytes' in (offline.posted[0]?.body ?? {}), 'public gateways know no such member')
  t.match((await offline.call('GET', 'x-deal-offline')).json.OfflineDeal, [{ TaskStatus: 'Recorded', Deals: [] }])
})

together('what it may cost at most counts against the caps', async (t) => {
  // 2000 bytes fill a piece of 4 KiB: 4096 / 2^30 * 10^-8 * 518400 fil.
  const offline = await Offline.start(t, { deal: { maxSpendPerDay: '0.00000003' } })
  t.equal((await offline.order(terms)).status, 200)
  t.equal(await offline.spent(), 38_147n * 518_400n)
  t.equal(offline.posted[0]?.body.Max_Piece_Bytes, '4096', 'the gateway proposes no more')
  t.equal((await offline.order({ ...terms, TaskName: 'other' })).code, 'SpendCapReached')
  t.equal(offline.asked, 1)
})

together('a schedule makes offline deals on the terms of the bucket', async (t) => {
  const offline = await Offline.start(t)
  const schedule = { Id: 'weekly', Cron: '0 3 * * SUN', Kind: 'offline', Filter: { Prefix: 'a' } }
  for (const [configuration, code] of [
    [{ Schedules: [schedule] }, 'DealTermsInvalid'],
    [{ Schedules: [schedule], OfflineTerms: { ...terms, MaxPrice: 'much' } }, 'DealTermsInvalid'],
    [
      {
        Schedules: [{ ...schedule, Filter: { Tags: [{ Key: 'a', Value: 'b' }] } }],
        OfflineTerms: terms,
      },
      'InvalidArgument',
    ],
  ] as const)
    t.equal((await offline.call('POST', 'x-deal-config', configuration)).code, code)
  const set = await offline.call('POST', 'x-deal-config', { Schedules: [schedule], OfflineTerms: terms })
  t.equal(set.status, 200, set.body)
  offline.now = Date.parse('2026-11-22T03:00:00Z')
  const parts = new DealDeps(dealOptions.parse({}), offline.proxy.host)
  const look = () => new Scheduler(parts).work.run({ signal: new AbortController().signal, mayGoOn: () => true })
  await look()
  const job = await offline.job('Complete')
  await look()
  t.match(job.input, { cause: 'schedule', prefix: 'a', generation: { schedule: 'weekly', due: offline.now } })
  t.match(offline.posted, [{ body: { Prefix: 'a', Max_Price: '0.00000001', Task_Name: 'fakes' } }])
  t.same((await parts.schedules.get('fakes', 'weekly'))?.complete, [offline.now])
})
