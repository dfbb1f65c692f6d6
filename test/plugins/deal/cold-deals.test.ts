import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DealRecords } from '../../../plugins/deal/records/deal-records.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import { ArchiveProxy, BUCKET, terms } from './archive-proxy.js'
import { controlNetwork, owner } from './proxy.js'

t.jobs = 3

const options = { eviction: 'verified' } as const
/** More than the smallest piece that t01001 takes. */
const BODY = 'The quick brown fox jumps over the lazy dog. '.repeat(20)
const OTHER = 't01001'

/**
 * A call about an object of the bucket, whose answer it waits for. Each has a token of its own: two requests of one
 * second with the same signature are one order.
 */
async function ask(proxy: ArchiveProxy, method: string, key: string, subresource: string, body?: object) {
  const { status, body: text } = await signedRequest(proxy.endpoint, owner, {
    method,
    path: `/${BUCKET}${key === '' ? '' : `/${key}`}`,
    headers: { prefer: 'wait=120', 'idempotency-key': randomBytes(16).toString('hex') },
    query: { format: 'json', [subresource]: '' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status, json: JSON.parse(text) }
}

/** The deals of an object as the gateway remembers them, the oldest first. */
async function dealsOf(proxy: ArchiveProxy, key: string): Promise<{ DealCid: string; MinerId: string }[]> {
  const { json } = await ask(proxy, 'GET', key, 'x-deal')
  return json.DealEntry.map(({ Deal }: { Deal: object }) => Deal)
}

function untilActive({ host }: ArchiveProxy, dealCid: string) {
  const records = new DealRecords(host.state)
  return until(`${dealCid} is active`, async () => (await records.get(dealCid))?.live?.state === 'StorageDealActive')
}

t.test('an object whose bytes are only in a deal has another deal made from it', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, options)
  await proxy.put('a', { Body: BODY })
  const { Metadata } = await proxy.untilCold('a')
  const quoted = await ask(proxy, 'POST', 'a', 'x-deal-quote', { MinerId: OTHER })
  t.match(quoted, { status: 200, json: { Bytes: BODY.length, RetrievalBytes: BODY.length } })
  t.match(quoted.json.Warnings, [/takes them from their deals first/])
  t.equal((await dealsOf(proxy, 'a')).length, 1, 'a quote makes none')

  const made = await ask(proxy, 'POST', 'a', 'x-deal', { MinerId: OTHER })
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
  await proxy.untilHead('it comes back from the new deal', 'a', ({ Restore }) => /expiry-date/.test(Restore ?? ''))
  t.equal(await proxy.read('a'), BODY)
})

t.test('a bucket with objects that are only in deals', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, options)
  await proxy.put('cold', { Body: BODY })
  await proxy.put('hot', { StorageClass: 'STANDARD' })
  await proxy.untilCold('cold')
  t.match(await ask(proxy, 'POST', '', 'x-deal-quote'), {
    status: 200,
    json: { Objects: 2, RetrievalBytes: BODY.length },
  })
  const made = await ask(proxy, 'POST', '', 'x-deal', { MinerId: OTHER })
  t.match(made, { status: 200, json: { Bucket: BUCKET } })
  t.match(await proxy.head('cold'), { StorageClass: 'GLACIER', Restore: undefined })
  await untilActive(proxy, made.json.Deal.DealCid)
  await proxy.fault('offline', true)
  const again = await ask(proxy, 'POST', '', 'x-deal', { MinerId: OTHER, Force: true })
  t.match(again, { status: 200 }, 'the deal of the bucket delivers it, too')
})

t.test('where no deal delivers, the deal is refused and nothing is paid', { buffered: true }, async (t) => {
  await farFromMidnight()
  // The first deal and one more.
  const cost = Number(terms.price) * terms.duration
  const proxy = await ArchiveProxy.start(t, { ...options, maxSpendPerDay: String(cost * 2) })
  await proxy.put('a', { Body: BODY })
  await proxy.untilCold('a')
  await proxy.fault('offline', true)
  for (const attempt of [1, 2, 3]) {
    const answer = await ask(proxy, 'POST', 'a', 'x-deal', { MinerId: OTHER, Force: true })
    t.match(answer.json, { Code: 'DealRejected', Message: /t01000 is offline/ }, `attempt ${attempt}`)
    t.ok(answer.status >= 400 && answer.status < 500, 'no client repeats it by itself')
  }
  t.equal((await dealsOf(proxy, 'a')).length, 1)
  t.match(await proxy.head('a'), { StorageClass: 'GLACIER', Restore: undefined, Metadata: { 'deal-count': '1' } })

  await proxy.fault('offline', false)
  const made = await ask(proxy, 'POST', 'a', 'x-deal', { MinerId: OTHER, Force: true })
  t.equal(made.status, 200, JSON.stringify(made.json))
  const dear = await ask(proxy, 'POST', 'a', 'x-deal', { MinerId: 't01005', Force: true })
  t.equal(dear.json.Code, 'SpendCapReached', JSON.stringify(dear.json))
  t.equal((await dealsOf(proxy, 'a')).length, 2)
})

t.test('what a provider has lost is in no further deal', { buffered: true }, async (t) => {
  const proxy = await ArchiveProxy.start(t, options)
  await proxy.put('a', { Body: BODY })
  await proxy.untilCold('a')
  await proxy.fault('loses-data', true)
  const answer = await ask(proxy, 'POST', 'a', 'x-deal', { MinerId: OTHER })
  t.match(answer.json, { Code: 'DealRejected' })
  t.equal((await dealsOf(proxy, 'a')).length, 1)
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
  const content = randomBytes(48 * 1024 * 1024)
  t.equal((await send(server, { method: 'PUT', target: '/cold' })).status, 200)
  const headers = { 'x-amz-storage-class': 'GLACIER' }
  t.equal((await send(server, { method: 'PUT', target: '/cold/a', body: content, headers })).status, 200)
  await until('the object is cold', async () => {
    const { headers } = await send(server, { method: 'HEAD', target: '/cold/a' })
    return headers['x-amz-storage-class'] === 'GLACIER' && headers['x-amz-restore'] === undefined
  })
  const request = Buffer.from(JSON.stringify({ MinerId: OTHER }))
  const askForDeal = (wait: number) =>
    send(server, {
      method: 'POST',
      target: '/cold/a?format=json&x-deal=',
      body: request,
      headers: { 'content-type': 'application/json', 'x-amz-client-token': 'another', prefer: `wait=${wait}` },
    })
  // Ten chunks of 1 MiB a second: it takes five seconds, in which it is killed as soon as the first bytes are packed.
  await slow(server, true)
  const begun = await askForDeal(0)
  t.equal(begun.status, 202)
  const id = begun.headers['x-dealgate-job-id']
  const job = async () =>
    JSON.parse((await send(server, { method: 'GET', target: `/-/jobs/v1/${id}` })).body.toString())
  for (const death of [1, 2]) {
    await until('bytes of the first deal are on their way into the second', async () => {
      const { Status, Phase } = await job()
      t.notOk(['Complete', 'Failed'].includes(Status), `it is not over at death ${death}`)
      return Phase === 'Packing'
    })
    await server.kill9()
    await server.start()
  }
  await slow(server, false)
  const done = await askForDeal(120)
  t.equal(done.status, 200, done.body.toString())
  const { Deal, JobId } = JSON.parse(done.body.toString())
  t.equal(JobId, id, 'the same job')
  const history = await send(server, { method: 'GET', target: '/cold/a?format=json&x-deal=' })
  const { DealEntry } = JSON.parse(history.body.toString())
  t.equal(DealEntry.length, 2)
  t.equal(DealEntry[1].Deal.DealCid, Deal.DealCid)
  t.equal(DealEntry[0].Deal.DataCid, Deal.DataCid)
  const inNetwork = readdirSync(join(server.data, 'services', 'network'), { recursive: true, encoding: 'utf8' })
  t.equal(inNetwork.filter((name) => name.endsWith('.car')).length, 2, 'and the providers hold no other')
  const { headers: told } = await send(server, { method: 'HEAD', target: '/cold/a' })
  t.equal(told['x-amz-storage-class'], 'GLACIER')
})
