import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DealRecord } from '../../../plugins/deal/records/deal-record.js'
import { DealRecords } from '../../../plugins/deal/records/deal-records.js'
import type { Job } from '../../../src/api/jobs.js'
import { temporaryFolder } from '../../support/content/folders.js'
import type { Fate } from '../../support/gateway/between.js'
import { controlNetwork } from '../../support/plugins/deal-proxy.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { ask as askServer } from '../../support/server/many-deaths.js'
import { send } from '../../support/sign/send.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms } from './archive-proxy.js'

t.jobs = 4

const verified = { eviction: 'verified' } as const

/** Each call has a token of its own: two requests of one second with the same signature are one order. */
const ask = (proxy: ArchiveProxy, method: string, target: string, body?: object, wait = 60) =>
  proxy.call(method, target, body, { prefer: `wait=${wait}`, 'idempotency-key': randomBytes(16).toString('hex') })

/** Lets so many objects be brought back, and holds the others back until it is called. Needs a proxy with a hop. */
function holdRetrievals({ between }: ArchiveProxy, free = 0): () => void {
  let letGo = () => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
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
  const proxy = await ArchiveProxy.start(t, verified, {}, { hop: true })
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
  const begun = await retrieve(proxy, 'dir/far', order)
  t.equal(begun.headers['x-dealgate-job-id'], begun.json.JobId)
  t.equal(begun.headers.location, `/-/jobs/v1/${begun.json.JobId}`)
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
  const proxy = await ArchiveProxy.start(t, verified)
  await proxy.put('far')
  await proxy.untilCold('far')
  const plain = await ask(proxy, 'GET', '/far')
  t.match(plain, { status: 403, code: 'InvalidObjectState' })
  t.notOk('retry-after' in plain.headers)
  t.equal((await ask(proxy, 'POST', '?x-deal-config=', { ReadThrough: true })).status, 200)
  const refused = await ask(proxy, 'GET', '/far')
  t.match(refused, { status: 403, code: 'InvalidObjectState', headers: { 'retry-after': '30' } })
  const { Restore } = await proxy.untilHead('it is here', 'far', (head) => head.Restore?.includes('false') ?? false)
  t.match(Restore, 'expiry-date')
  t.equal((await ask(proxy, 'GET', '/far')).body, 'the bytes of far')
})

/** An object whose bytes are only in a deal, and that deal. */
async function kept(t: Test, RenewBeforeDays?: number) {
  const proxy = await ArchiveProxy.start(t, verified)
  await proxy.put('kept')
  await proxy.untilCold('kept')
  if (RenewBeforeDays !== undefined)
    t.equal(
      (await ask(proxy, 'POST', '?x-deal-config=', { RenewBeforeDays, PublicNetwork: 'encrypted-only' })).status,
      200,
    )
  const deals = async () => (await ask(proxy, 'GET', '/kept?x-deal=')).json.DealEntry
  return { proxy, deals }
}

t.test('an encrypted object is evicted, renewed and verified by its stored bytes', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified)
  // More than one block, and a stored ETag that is no digest of the stored bytes.
  const Body = 'private '.repeat(50_000)
  await proxy.put('sealed', { Body, ServerSideEncryption: 'AES256' })
  await proxy.untilCold('sealed')
  const records = new DealRecords(proxy.host.state)
  const deals = () => records.of(BUCKET, 'sealed')
  t.ok((await deals())[0]?.verified, 'the eviction has compared its only deal')
  t.equal((await ask(proxy, 'POST', '?x-deal-config=', { RenewBeforeDays: 30 })).status, 200)
  await proxy.pass(800_000)
  const renewed = await until('the renewal is verified', async () => {
    const [, second] = await deals()
    return second?.verified !== undefined && second
  })
  t.equal(renewed.doubted, undefined)
  await proxy.untilCold('sealed')
  t.equal(await proxy.restore('sealed', { Days: 1 }), 202)
  await proxy.untilRestored('sealed')
  t.equal(await proxy.read('sealed'), Body)
})

t.test('an object is brought back for good when nothing renews its last deal', { buffered: true }, async (t) => {
  const { proxy } = await kept(t)
  await proxy.pass(1_405_000)
  await proxy.untilKept('kept')
  await proxy.pass(200_000)
  t.equal(await proxy.read('kept'), 'the bytes of kept')
})

t.test('an object is brought back for good also when its deal cannot be renewed', { buffered: true }, async (t) => {
  const { proxy, deals } = await kept(t, 30)
  const records = proxy.host.state.records<DealRecord>('deals')
  const [{ Deal }] = await deals()
  const record = await records.get(Deal.DealCid)
  if (record) await records.set(Deal.DealCid, { ...record, deal: { ...record.deal, price: 'as agreed' } })
  await proxy.pass(1_405_000)
  await proxy.untilKept('kept')
  t.equal((await deals()).length, 1)
})

t.test('a bucket is retrieved, and the job goes on after a restart', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified, {}, { hop: true })
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
  await proxy.open(verified)
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

/** More than the smallest piece that t01001 takes. */
const BODY = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
const OTHER = 't01001'

/** The deals of an object as the gateway remembers them, the oldest first. */
async function dealsOf(proxy: ArchiveProxy, key: string): Promise<{ DealCid: string; MinerId: string }[]> {
  const { json } = await ask(proxy, 'GET', `/${key}?x-deal=`)
  return json.DealEntry.map(({ Deal }: { Deal: object }) => Deal)
}

function untilActive({ host }: ArchiveProxy, dealCid: string) {
  const records = new DealRecords(host.state)
  return until(`${dealCid} is active`, async () => (await records.get(dealCid))?.live?.state === 'StorageDealActive')
}

t.test('an object whose bytes are only in a deal has another deal made from it', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified)
  await proxy.put('a', { Body: BODY })
  const { Metadata } = await proxy.untilCold('a')
  const quoted = await ask(proxy, 'POST', '/a?x-deal-quote=', { MinerId: OTHER })
  t.match(quoted, { status: 200, json: { Bytes: BODY.length, RetrievalBytes: BODY.length } })
  t.match(quoted.json.Warnings, [/takes them from their deals first/])
  t.equal((await dealsOf(proxy, 'a')).length, 1, 'a quote makes none')

  const made = await ask(proxy, 'POST', '/a?x-deal=', { MinerId: OTHER })
  t.match(made, { status: 200, json: { Deal: { DataCid: Metadata?.cid, MinerId: OTHER } } }, 'of the same content')
  const second = made.json.Deal.DealCid
  t.same(
    (await dealsOf(proxy, 'a')).map(({ DealCid }) => DealCid),
    [Metadata?.['deal-cid'], second],
  )
  const head = await proxy.head('a')
  t.match(head, { StorageClass: 'GLACIER', Restore: undefined, Metadata: { 'deal-count': '2' } }, 'it stays there')

  await untilActive(proxy, second)
  // The next look at an active deal comes later.
  proxy.ahead += terms.duration / 10
  const records = new DealRecords(proxy.host.state)
  await until('the deal is verified', async () => (await records.get(second))?.verified !== undefined)
  await proxy.fault('offline', true)
  t.equal(await proxy.restore('a', { Days: 1 }), 202)
  await proxy.untilRestored('a')
  t.equal(await proxy.read('a'), BODY)
})

t.test('a bucket with objects that are only in deals', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, verified)
  await proxy.put('cold', { Body: BODY })
  await proxy.put('hot', { StorageClass: 'STANDARD' })
  await proxy.untilCold('cold')
  t.match(await ask(proxy, 'POST', '?x-deal-quote='), {
    status: 200,
    json: { Objects: 2, RetrievalBytes: BODY.length },
  })
  const made = await ask(proxy, 'POST', '?x-deal=', { MinerId: OTHER })
  t.match(made, { status: 200, json: { Bucket: BUCKET } })
  t.match(await proxy.head('cold'), { StorageClass: 'GLACIER', Restore: undefined })
  await untilActive(proxy, made.json.Deal.DealCid)
  await proxy.fault('offline', true)
  const again = await ask(proxy, 'POST', '?x-deal=', { MinerId: OTHER, Force: true })
  t.match(again, { status: 200 }, 'the deal of the bucket delivers it, too')
})

t.test('where no deal delivers, the deal is refused and nothing is paid', { buffered: true }, async (t) => {
  await farFromMidnight()
  // The first deal and one more.
  const cost = Number(terms.price) * terms.duration
  const proxy = await ArchiveProxy.start(t, { ...verified, maxSpendPerDay: String(cost * 2) })
  await proxy.put('a', { Body: BODY })
  await proxy.untilCold('a')
  await proxy.fault('offline', true)
  for (const attempt of [1, 2]) {
    const answer = await ask(proxy, 'POST', '/a?x-deal=', { MinerId: OTHER, Force: true })
    t.match(answer.json, { Code: 'DealRejected', Message: /t01000 is offline/ }, `attempt ${attempt}`)
    t.ok(answer.status >= 400 && answer.status < 500, 'no client repeats it by itself')
  }
  t.equal((await dealsOf(proxy, 'a')).length, 1)
  t.match(await proxy.head('a'), { StorageClass: 'GLACIER', Restore: undefined, Metadata: { 'deal-count': '1' } })

  await proxy.fault('offline', false)
  const made = await ask(proxy, 'POST', '/a?x-deal=', { MinerId: OTHER, Force: true })
  t.equal(made.status, 200, JSON.stringify(made.json))
  const dear = await ask(proxy, 'POST', '/a?x-deal=', { MinerId: 't01005', Force: true })
  t.equal(dear.json.Code, 'SpendCapReached', JSON.stringify(dear.json))
  t.equal((await dealsOf(proxy, 'a')).length, 2)
})

const ACCOUNT = { accessKey: 'gateway-access', secretKey: 'gateway-secret-key' }

/** A server in a process of its own, whose network is told what to do. */
async function startServer(t: Test): Promise<Dealgate> {
  const config = join(temporaryFolder(t), 'dealgate.json')
  const plugin = {
    terms,
    maxSpendPerDay: 'none',
    maxTimesAsk: 'none',
    eviction: 'verified',
    evictionIntervalSeconds: 1,
    statusIntervalSeconds: 1,
  }
  await writeFile(config, JSON.stringify({ plugins: [{ use: 'deal', options: plugin }] }))
  const keys = ['--gateway-access-key', ACCOUNT.accessKey, '--gateway-secret-key', ACCOUNT.secretKey]
  return startDealgate(t, {
    args: ['--config', config, '--network-epoch-seconds', '0.001', '--network-control', ...keys],
  })
}

async function slow(server: Dealgate, on: boolean): Promise<void> {
  await controlNetwork(server.gateway, ACCOUNT, { MinerId: terms.minerId, Fault: 'slow', On: String(on) })
}

t.test('killed while the bytes are on their way back, there is one deal, paid once', { buffered: true }, async (t) => {
  const server = await startServer(t)
  const content = randomBytes(24 * 1024 * 1024)
  t.equal((await send(server, { method: 'PUT', target: '/cold' })).status, 200)
  const headers = { 'x-amz-storage-class': 'GLACIER' }
  t.equal((await send(server, { method: 'PUT', target: '/cold/a', body: content, headers })).status, 200)
  await until('the object is cold', async () => {
    const { headers } = await send(server, { method: 'HEAD', target: '/cold/a' })
    return headers['x-amz-storage-class'] === 'GLACIER' && headers['x-amz-restore'] === undefined
  })
  const askForDeal = (wait: number) =>
    askServer(server, 'POST', '/cold/a?x-deal=', {
      json: { MinerId: OTHER },
      headers: { 'x-amz-client-token': 'another', prefer: `wait=${wait}` },
    })
  // Ten chunks of 1 MiB a second: it takes more than two seconds, in which it is killed as soon as the first bytes are
  // packed.
  await slow(server, true)
  const begun = await askForDeal(0)
  t.equal(begun.status, 202)
  const id = begun.json.JobId
  for (const death of process.env.DEALGATE_STRESS_ROUNDS ? [1, 2] : [1]) {
    await until('bytes of the first deal are on their way into the second', async () => {
      const { Status, Phase } = (await askServer(server, 'GET', `/-/jobs/v1/${id}`)).json
      t.notOk(['Complete', 'Failed'].includes(Status), `it is not over at death ${death}`)
      return Phase === 'Packing'
    })
    await server.kill9()
    await server.start()
  }
  await slow(server, false)
  const { status, json } = await askForDeal(120)
  t.equal(status, 200, JSON.stringify(json))
  t.equal(json.JobId, id, 'the same job')
  const [first, second, ...others] = (await askServer(server, 'GET', '/cold/a?x-deal=')).json.DealEntry
  t.same(others, [])
  t.equal(second.Deal.DealCid, json.Deal.DealCid)
  t.equal(first.Deal.DataCid, json.Deal.DataCid)
  const inNetwork = readdirSync(join(server.data, 'services', 'network'), { recursive: true, encoding: 'utf8' })
  t.equal(inNetwork.filter((name) => name.endsWith('.car')).length, 2, 'and the providers hold no other')
  const { headers: told } = await send(server, { method: 'HEAD', target: '/cold/a' })
  t.equal(told['x-amz-storage-class'], 'GLACIER')
})
