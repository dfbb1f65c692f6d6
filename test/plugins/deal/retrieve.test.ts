import t from 'tap'
import type { DealRecord } from '../../../plugins/deal/records/deal-records.js'
import type { Job } from '../../../src/api/jobs.js'
import type { Fate } from '../../support/gateway/between.js'
import { signedRequest, type TextAnswer } from '../../support/sign/signed-request.js'
import { until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET } from './archive-proxy.js'
import { owner } from './proxy.js'

t.jobs = 4

function send(proxy: ArchiveProxy, method: string, target: string, body?: object, wait = 60): Promise<TextAnswer> {
  const [path = '', query = ''] = target.split('?')
  return signedRequest(proxy.endpoint, owner, {
    method,
    path: `/${BUCKET}${path}`,
    headers: { prefer: `wait=${wait}` },
    query: { format: 'json', ...Object.fromEntries(new URLSearchParams(query)) },
    ...(body && { body: JSON.stringify(body) }),
  })
}

async function ask(proxy: ArchiveProxy, method: string, target: string, body?: object, wait?: number) {
  const answer = await send(proxy, method, target, body, wait)
  return { status: answer.status, json: JSON.parse(answer.body) }
}

/** Lets so many objects be brought back, and holds the others back until it is called. Needs a proxy with a hop. */
function holdRetrievals({ between }: ArchiveProxy, free = 0): () => void {
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let asked = 0
  if (!between) throw new Error('there is no hop')
  between.fate = async ({ path, headers }): Promise<Fate> => {
    const isHistory = 'x-cloud-history-only' in headers
    if (path.startsWith('/gateway/retrieve/') && !isHistory && ++asked > free) await held
    return 'pass'
  }
  return letGo
}

const retrieve = (proxy: ArchiveProxy, key: string, body?: object) =>
  ask(proxy, 'POST', `/${key}?x-deal-retrieve=`, body)

t.test('an object is retrieved as RestoreObject does it', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' }, {}, { hop: true })
  await proxy.put('hot', { StorageClass: 'STANDARD' })
  t.match(await retrieve(proxy, 'hot'), { status: 403, json: { Code: 'InvalidObjectState' } })
  t.match(await retrieve(proxy, 'none'), { status: 404, json: { Code: 'NoSuchKey' } })
  await proxy.put('near', { StorageClass: 'GLACIER_IR' })
  await proxy.ended('near')
  t.match(await retrieve(proxy, 'near'), { status: 200, json: { State: 'Present', Deal: [{ MinerId: 't01000' }] } })

  await proxy.put('dir/far')
  await proxy.untilCold('dir/far')
  const listed = await ask(proxy, 'GET', '/dir/far?x-deal=')
  t.match(listed, { status: 200, json: { DealEntry: [{ Status: 'success', Deal: { Status: 'StorageDealActive' } }] } })
  await proxy.untilCold('dir/far')
  t.match((await ask(proxy, 'POST', '/dir/far?x-deal-quote=', { DurationEpochs: 1 })).json.Warnings, [
    /holds no copy of 1/,
  ])

  t.match(await retrieve(proxy, 'dir/far', { DealCid: 'bafynone' }), { status: 404, json: { Code: 'NoSuchDeal' } })
  t.match(await retrieve(proxy, 'dir/far', { Days: -1 }), { status: 400, json: { Code: 'InvalidArgument' } })
  t.match(await retrieve(proxy, 'dir/far', { Tier: 'Quick' }), { status: 400, json: { Code: 'InvalidArgument' } })
  const letGo = holdRetrievals(proxy)
  const [{ Deal }] = listed.json.DealEntry
  const order = { Days: 7, Tier: 'Expedited', DealCid: Deal.DealCid }
  const accepted = await send(proxy, 'POST', '/dir/far?x-deal-retrieve=', order)
  const begun = { status: accepted.status, json: JSON.parse(accepted.body) }
  t.equal(accepted.headers['x-dealgate-job-id'], begun.json.JobId)
  t.equal(accepted.headers.location, `/-/jobs/v1/${begun.json.JobId}`)
  t.match(begun, { status: 202, json: { State: 'Restoring', JobId: /^j-/, Deal: [{ DealCid: Deal.DealCid }] } })
  t.match(await retrieve(proxy, 'dir/far'), { status: 409, json: { Code: 'RestoreAlreadyInProgress' } })
  letGo()
  await proxy.host.own.jobs.wait(begun.json.JobId, 60_000)
  t.match(await retrieve(proxy, 'dir/far', { Days: 9 }), {
    status: 200,
    json: { State: 'Restored', RestoreExpiryDate: /T00:00:00/ },
  })
  t.equal(await proxy.read('dir/far'), 'the bytes of dir/far')
})

t.test('what is read is brought back, where the bucket says so', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  await proxy.put('far')
  await proxy.untilCold('far')
  const plain = await send(proxy, 'GET', '/far')
  t.match(plain, { status: 403, code: 'InvalidObjectState' })
  t.notOk('retry-after' in plain.headers)
  t.equal((await ask(proxy, 'POST', '?x-deal-config=', { ReadThrough: true })).status, 200)
  const refused = await send(proxy, 'GET', '/far')
  t.match(refused, { status: 403, code: 'InvalidObjectState', headers: { 'retry-after': '30' } })
  const { Restore } = await proxy.untilHead('it is here', 'far', (head) => head.Restore?.includes('false') ?? false)
  t.match(Restore, 'expiry-date')
  t.equal((await send(proxy, 'GET', '/far')).body, 'the bytes of far')
})

t.test('the deal of an object whose bytes are nowhere else is renewed', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  await proxy.put('kept')
  await proxy.untilCold('kept')
  t.equal((await ask(proxy, 'POST', '?x-deal-config=', { RenewBeforeDays: 30 })).status, 200)
  // An epoch is a millisecond here.
  const pass = async (epochs: number) => {
    await proxy.control({ AdvanceEpochs: String(epochs) })
    proxy.ahead += epochs
  }
  await pass(800_000)
  const renewed = await until('it is renewed after half of its time', async () => {
    const { DealEntry } = (await ask(proxy, 'GET', '/kept?x-deal=')).json
    return DealEntry.length === 2 && DealEntry
  })
  t.not(renewed[0].Deal.DealCid, renewed[1].Deal.DealCid)
  await proxy.untilCold('kept')
})

t.test('an object is brought back for good when nothing renews its last deal', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  await proxy.put('kept')
  await proxy.untilCold('kept')
  const pass = async (epochs: number) => {
    await proxy.control({ AdvanceEpochs: String(epochs) })
    proxy.ahead += epochs
  }
  await pass(1_405_000)
  await proxy.untilHead(
    'it is here for good',
    'kept',
    ({ StorageClass, Restore }) => StorageClass === 'GLACIER_IR' && !Restore,
  )
  await pass(200_000)
  t.equal(await proxy.read('kept'), 'the bytes of kept')
})

t.test('an object is brought back for good also when its deal cannot be renewed', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, { eviction: 'verified' })
  await proxy.put('kept')
  await proxy.untilCold('kept')
  t.equal((await ask(proxy, 'POST', '?x-deal-config=', { RenewBeforeDays: 30 })).status, 200)
  const records = proxy.host.state.records<DealRecord>('deals')
  const [{ Deal }] = (await ask(proxy, 'GET', '/kept?x-deal=')).json.DealEntry
  const record = await records.get(Deal.DealCid)
  if (record) await records.set(Deal.DealCid, { ...record, deal: { ...record.deal, price: 'as agreed' } })
  await proxy.control({ AdvanceEpochs: String(1_405_000) })
  proxy.ahead += 1_405_000
  await proxy.untilHead('it is here for good', 'kept', ({ StorageClass }) => StorageClass === 'GLACIER_IR')
  t.equal((await ask(proxy, 'GET', '/kept?x-deal=')).json.DealEntry.length, 1)
})

t.test('a bucket is retrieved, and the job goes on after a restart', { buffered: true }, async (t) => {
  const options = { eviction: 'verified' } as const
  const proxy = await ArchiveProxy.start(t, options, {}, { hop: true })
  // More than are brought back at once.
  const keys = Array.from({ length: 12 }, (_, i) => `wanted/${i % 3 ? 'deep/er/' : ''}${i}`)
  for (const key of [...keys, 'other']) await proxy.put(key)
  await proxy.put('wanted/hot', { StorageClass: 'STANDARD' })
  await proxy.put('wanted/near', { StorageClass: 'GLACIER_IR' })
  for (const key of [...keys, 'other']) await proxy.untilCold(key)

  t.match(await ask(proxy, 'POST', '?x-deal-retrieve=', { Tier: 'Expedited' }), { json: { Code: 'InvalidTier' } })
  const letGo = holdRetrievals(proxy, 3)
  const order = { Prefix: 'wanted/', Days: 3, Tier: 'Bulk' }
  const { status, json } = await ask(proxy, 'POST', '?x-deal-retrieve=', order, 0)
  t.equal(status, 202)
  const job = (): Promise<Job | undefined> => proxy.host.own.jobs.get(json.JobId)
  await until('some are here', async () => ((await job())?.progress.tasks.succeeded ?? 0) > 1)
  t.match((await job())?.progress, { phase: 'Restoring', tasks: { total: keys.length + 1, failed: 0 } })
  await proxy.open(options)
  letGo()
  const done = await until('all are here', async () => {
    const seen = await job()
    return seen?.status === 'Complete' && seen
  })
  const { Restored, Present, Failed } = done.result as Record<string, number>
  t.equal((Restored ?? 0) + (Present ?? 0), keys.length + 1)
  t.equal(Failed, 0)
  for (const key of keys) t.equal(await proxy.read(key), `the bytes of ${key}`)
  await t.rejects(proxy.read('other'), { name: 'InvalidObjectState' })

  await proxy.fault('offline', true)
  const failing = await ask(proxy, 'POST', '?x-deal-retrieve=', { Prefix: 'oth' })
  t.match(failing.json, { Restored: 0, Failed: 1, Failures: [{ Key: 'other', Code: 'InvalidObjectState' }] })
})
