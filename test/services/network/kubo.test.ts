import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { HOUR_MS } from '../../../common/time.js'
import { silentLog } from '../../../services/log.js'
import { kuboSchema, openKuboNetwork } from '../../../services/network/kubo/kubo-network.js'
import type { KuboNode } from '../../../services/network/kubo/kubo-node.js'
import { Pins } from '../../../services/network/kubo/pins.js'
import type { DealProgress, DealRequest, Network } from '../../../services/network/network.js'
import { createCommit, pack } from '../../../services/network/pack/index.js'
import { openStore } from '../../../services/store/open.js'
import { MiB } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { afterEachStep, CrashImages } from '../crash-images.js'
import { databaseOf, onPostgres } from '../engine.js'
import { start, startGateway } from '../gateway/client.js'
import { DealClient } from '../gateway/deal-client.js'
import { type Asked, ask, packedFile } from './embedded-network.js'
import { fail, PEER_ID, type Script, ScriptedKubo, stream } from './scripted-kubo.js'
import { keptProposal } from './verify-proposal.js'

const commit = createCommit()
const terms = { minerId: PEER_ID, price: '0', duration: 518_400, verifiedDeal: false, fastRetrieval: true }

/** Enough for a deal that is only made: the large file has two chunks. */
const few = { 'a.txt': Buffer.from('a'), large: randomBytes(MiB + 5), nothing: Buffer.alloc(0) }
const folder = { 'a.txt': Buffer.from('a'), large: randomBytes(3 * MiB + 5), nothing: Buffer.alloc(0) }

const wanted = (more: Partial<DealRequest> = {}, files: Readonly<Record<string, Buffer>> = few): Asked =>
  ask(randomUUID(), files, { terms, ...more })

/** The root of a folder of these files. */
async function rootOf(t: Test, content: Record<string, Buffer>): Promise<string> {
  const target = join(temporaryFolder(t), 'deal.car')
  return (await pack(wanted({}, content).files(), { target, onFile: () => {} })).dataCid
}

interface Opening {
  readonly folder?: string
  readonly url?: string
  readonly timeoutMs?: number
  readonly pinMs?: number
  readonly now?: () => number
}

/** Stopped with the test. */
async function open(
  t: Test,
  kubo: ScriptedKubo,
  options: Opening = {},
): Promise<Network & { readonly folder: string }> {
  const { folder = t.testdir(), url = kubo.url, timeoutMs = 20_000, ...rest } = options
  const database = await databaseOf(folder)
  const network = await openKuboNetwork({ url, folder, database, pack, commit, log: silentLog, timeoutMs, ...rest })
  t.teardown(() => network.stop())
  return Object.assign(network, { folder })
}

function* lostAfter(bytes: Uint8Array): Iterable<Uint8Array> {
  yield bytes
  throw new Error('block was lost')
}

const unavailable = { name: 'NetworkError', code: 'Unavailable' }
const notRetrievable = { name: 'NetworkError', code: 'NotRetrievable' }

t.test('a deal is made, found, followed and brought back', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const network = await open(t, kubo, { url: `${kubo.url}/api/v0/` })
  t.equal(network.kind, 'kubo')
  const [provider] = await network.providers()
  t.match(provider, { minerId: PEER_ID, price: '0', status: 'Active', maxPieceSize: 2 ** 33, contactInfo: /^\/ip4/ })

  const progress: DealProgress[] = []
  const request = wanted({ onProgress: (now) => void progress.push(now) }, folder)
  const deal = await network.deal(request)
  t.match(deal, {
    reference: request.reference,
    terms,
    dataCid: await rootOf(t, folder),
    walletAddress: network.wallet,
  })
  t.ok(progress.filter(({ phase }) => phase === 'Sending').length > 3)

  const { headers, head, car } = kubo.form ?? assert.fail('nothing was imported')
  t.equal(car.length, deal.carSize)
  t.match(head, /^--dealgate-.*\r\nContent-Disposition: form-data; name="file"; filename="deal.car"\r\n/)
  t.match(headers, { 'content-length': /^\d+$/, 'user-agent': 'dealgate', 'transfer-encoding': undefined })

  t.same(await network.find(request.reference), deal)
  t.match(await network.status(deal.dealCid), { ...deal, state: 'StorageDealActive', message: '' })
  for (const file of request.packed.values()) {
    const content = folder[file.path[0] as keyof typeof folder]
    t.ok((await buffer(network.retrieve(deal.dealCid, file))).equals(content), file.path.join('/'))
  }
  t.same(await network.deal(wanted({ reference: request.reference })), deal, 'the same again makes nothing new')
  t.equal(kubo.calls.filter((command) => command === 'dag/import').length, 1)
  t.same(readdirSync(join(network.folder, 'staging')), [])

  await network.stop()
  const later = await open(t, kubo, { folder: network.folder })
  t.equal(later.wallet, network.wallet)
  t.same(await later.find(request.reference), deal)
  await t.rejects(later.status('nothing'), { code: 'NoSuchDeal' })

  kubo.pinned.clear()
  t.match(await later.status(deal.dealCid), { state: 'StorageDealError', message: /no longer holds/ })
  kubo.scripts.set('pin/ls', (_, response) => fail(response, 'lock file is held'))
  t.match(await later.status(deal.dealCid), {
    state: 'StorageDealActive',
    unconfirmed: true,
    message: /lock file is held/,
  })
  await later.stop()
  const proposal = await keptProposal(kuboSchema, network.folder, deal.dealCid)
  t.match(proposal, { client: network.wallet, provider: /^t2[a-z2-7]{39}$/, label: deal.dataCid })
})

t.test('what the node may not be asked for', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const network = await open(t, kubo)
  const cases: [Partial<DealRequest>, string, RegExp][] = [
    [{ terms: { ...terms, minerId: 't01000' } }, 'NoSuchProvider', new RegExp(PEER_ID)],
    [{ terms: { ...terms, price: 'much' } }, 'TermsRefused', /price/],
    [{ terms: { ...terms, duration: 0 } }, 'TermsRefused', /duration/],
    [{ bytesTotal: 2 ** 33 + 1 }, 'TermsRefused', /has room for pieces of 8589934592 bytes/],
  ]
  for (const [more, code, message] of cases)
    await t.rejects(network.deal(wanted(more)), { name: 'NetworkError', code, message })
  kubo.space = { RepoSize: 0, StorageMax: MiB }
  const declared = wanted({ bytesTotal: 1 })
  await t.rejects(network.deal(declared), { code: 'TermsRefused' }, 'the piece counts, not what is declared')
  t.notOk(kubo.calls.includes('dag/import'))
  t.same(readdirSync(join(network.folder, 'staging')), [])
  for (const url of ['/ip4/127.0.0.1/tcp/5001', 'ftp://kubo', 'http://%@kubo'])
    await t.rejects(open(t, kubo, { url }), RangeError, `no URL: ${url}`)
})

t.test('an import that comes to nothing leaves nothing', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const network = await open(t, kubo)
  // For what says nothing: the others may take their time.
  const hasty = await open(t, kubo, { folder: temporaryFolder(t), timeoutMs: 2000, pinMs: 2000 })
  const root = await rootOf(t, few)
  const line = (Cid: string, PinErrorMsg = ''): string =>
    `${JSON.stringify({ Root: { Cid: { '/': Cid }, PinErrorMsg } })}\n`
  const answered =
    (body: string | Buffer): Script =>
    async ({ request }, response) => {
      await buffer(request)
      response.end(body)
    }
  const cases: [string, Script, RegExp][] = [
    ['an error', (_, response) => fail(response, 'disk is full'), /disk is full/],
    [
      'an error after the headers, as a line',
      (_, response) => void response.end('{"Message":"not a CAR","Code":0,"Type":"error"}\n'),
      /not a CAR/,
    ],
    [
      'an error after the headers, as a trailer',
      async ({ request }, response) => {
        await buffer(request)
        stream(response, lostAfter(Buffer.from(line(root))))
      },
      /block was lost/,
    ],
    ['a root without its blocks', answered(line(root, 'block not found')), /could not pin the CAR: block not found/],
    ['another root', answered(line('bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku')), /did not accept/],
    ['no JSON', answered('<html>'), /did not accept/],
    ['too much of an answer', answered(Buffer.alloc(1_000_000, ' ')), /more than 65536 bytes/],
    ['a lost connection', ({ request }) => void request.destroy(), /cannot be reached/],
    ['nothing read, nothing said', () => sleep(10), /no data in either direction for 2 seconds/],
    [
      'an answer that hangs after the pin',
      async ({ request }, response) => {
        await buffer(request)
        kubo.pinned.add(root)
        response.write(' ')
        response.socket?.destroy()
      },
      /cannot be reached/,
    ],
  ]
  for (const [what, script, message] of cases) {
    kubo.scripts.set('dag/import', script)
    const request = wanted()
    const asked = what.endsWith('nothing said') ? hasty : network
    await t.rejects(asked.deal(request), { ...unavailable, message }, what)
    t.equal(await asked.find(request.reference), undefined)
    t.same([...kubo.pinned], [], `${what}: nothing is pinned`)
    t.same(readdirSync(join(asked.folder, 'staging')), [], `${what}: nothing is staged`)
  }
  const ending = new AbortController()
  kubo.scripts.set('dag/import', async (_, __, proceed) => {
    ending.abort(new Error('given up'))
    await proceed()
  })
  await t.rejects(network.deal(wanted({ signal: ending.signal })), { message: 'given up' })
  t.same([...kubo.pinned], [])
  kubo.scripts.clear()
  t.ok(await network.deal(wanted()), 'the next one succeeds')
})

t.test('bytes that are not those of the deal', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const network = await open(t, kubo)
  const request = wanted({}, folder)
  const { dealCid } = await network.deal(request)
  const [small, large] = [packedFile(request, 'a.txt'), packedFile(request, 'large')]
  const damaged = Buffer.from(folder.large)
  damaged[MiB + 7] = (damaged[MiB + 7] ?? 0) ^ 1
  type Case = [string, Script, { code: string; message?: RegExp | string }]
  const cases: Case[] = [
    ['damaged', (_, response) => stream(response, [damaged]), { ...notRetrievable, message: /not those of the block/ }],
    ['cut', (_, response) => stream(response, [folder.large.subarray(0, -1)]), notRetrievable],
    [
      'more',
      (_, response) => stream(response, [folder.large, Buffer.from('x')]),
      { ...notRetrievable, message: /More bytes arrived/ },
    ],
    [
      'an error on the way',
      (_, response) => stream(response, lostAfter(folder.large.subarray(0, 2 * MiB))),
      { ...notRetrievable, message: 'block was lost' },
    ],
    [
      'a lost connection',
      (_, response) => {
        response.write(folder.large.subarray(0, MiB))
        setTimeout(() => response.socket?.destroy(), 50)
      },
      unavailable,
    ],
  ]
  const fails = async (from: Network, [what, script, error]: Case) => {
    kubo.scripts.set('cat', script)
    let given = 0
    await t.rejects(
      async () => {
        for await (const chunk of from.retrieve(dealCid, large)) {
          assert.ok(folder.large.subarray(given, given + chunk.length).equals(chunk))
          given += chunk.length
        }
      },
      error,
      what,
    )
    t.ok(given <= folder.large.length, 'and what was given before is right')
  }
  for (const one of cases) await fails(network, one)
  kubo.scripts.set('cat', (_, response) => stream(response, [Buffer.from('b')]))
  await t.rejects(buffer(network.retrieve(dealCid, small)), notRetrievable, 'a file of one block')
  kubo.scripts.clear()
  const node = kubo.blocks.get(large.cid) ?? assert.fail()
  kubo.blocks.set(large.cid, Buffer.concat([node, Buffer.from('x')]))
  await t.rejects(buffer(network.retrieve(dealCid, large)), { ...notRetrievable, message: /other bytes/ }, 'a node')
  kubo.blocks.set(large.cid, randomBytes(3 * MiB))
  await t.rejects(buffer(network.retrieve(dealCid, large)), { ...notRetrievable, message: /more than/ }, 'a huge one')
  kubo.blocks.delete(large.cid)
  await t.rejects(buffer(network.retrieve(dealCid, large)), { ...notRetrievable, message: /not found/ }, 'none')
  kubo.blocks.set(large.cid, node)
  await t.rejects(buffer(network.retrieve(dealCid, { ...large, size: 5 })), notRetrievable, 'another size')
  const given = AbortSignal.abort(new Error('given up'))
  await t.rejects(buffer(network.retrieve(dealCid, large, given)), { message: 'given up' })
  t.ok((await buffer(network.retrieve(dealCid, large))).equals(folder.large), 'all is well in the end')
  await network.stop()
  // The others may take their time.
  const hasty = await open(t, kubo, { folder: network.folder, timeoutMs: 2000 })
  const silence: Script = (_, response) => void response.write(folder.large.subarray(0, MiB))
  await fails(hasty, ['nothing more', silence, { ...notRetrievable, message: /no data in either direction/ }])
})

t.test('a node that is down, locked or none at all', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const { port, url } = kubo
  await kubo.close()
  const network = await open(t, kubo, { url })
  await t.rejects(network.providers(), { ...unavailable, message: /ECONNREFUSED/ }, 'it is not known')
  await t.rejects(network.deal(wanted()), { code: 'ProviderOffline', message: /Try again/ })
  await kubo.listen(port)
  const request = wanted()
  const { dealCid } = await network.deal(request)
  await kubo.close()
  t.match(await network.providers(), [{ minerId: PEER_ID, status: 'Offline' }], 'known from before')
  t.match(await network.status(dealCid), { state: 'StorageDealActive', message: /cannot be reached/ })
  await t.rejects(buffer(network.retrieve(dealCid, packedFile(request, 'a.txt'))), unavailable)
  await kubo.listen(port)
  const answers: [string, Script, RegExp][] = [
    ['credentials', (_, response) => void response.writeHead(401).end(), /401: it requires other credentials/],
    ['a refusal', (_, response) => void response.writeHead(403).end('403 - Forbidden'), /403: it refuses/],
    ['another server', (_, response) => void response.writeHead(404).end('{}'), /404: there is no RPC/],
    ['a page', (_, response) => void response.end('<html>hello</html>'), /unexpected answer/],
    ['a proxy', (_, response) => void response.writeHead(502).end('<html>Bad Gateway</html>'), /answers 502/],
  ]
  for (const [what, script, message] of answers) {
    kubo.scripts.set('id', script)
    await t.rejects(network.deal(wanted()), { code: 'ProviderOffline', message }, what)
  }
  kubo.scripts.set('id', ({ request }, response, proceed) =>
    request.headers.authorization === `Basic ${Buffer.from('me:p@ss').toString('base64')}`
      ? proceed()
      : void response.writeHead(401).end(),
  )
  await network.stop()
  const login = await open(t, kubo, { url: url.replace('//', '//me:p%40ss@'), folder: network.folder })
  t.match(await login.providers(), [{ status: 'Active' }], 'with name and password')
})

const skip = onPostgres

t.test('a crash after any step leaves each deal made once, and no pin that is not needed', { skip }, async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const [shared, foreign] = [{ file: randomBytes(10) }, { file: randomBytes(11) }]
  const foreignRoot = await rootOf(t, foreign)
  kubo.pinned.add(foreignRoot)
  const orders = { a: [shared, 10], b: [shared, 1000], c: [foreign, 10], d: [few, 1000] } as const
  const order = (network: Network, reference: keyof typeof orders) => {
    const [content, duration] = orders[reference]
    return network.deal(wanted({ reference, terms: { ...terms, duration } }, content))
  }
  const home = temporaryFolder(t)
  const crashes = new CrashImages(home, temporaryFolder(t))
  const known = new Map<keyof typeof orders, string | undefined>()
  let now = Date.now()
  const record = () => ({ now, known: new Map(known), pinned: new Set(kubo.pinned), blocks: new Map(kubo.blocks) })
  const images: (ReturnType<typeof record> & { readonly home: string })[] = []
  const look = (): void => {
    // What the node has changes as well.
    images.push({ home: crashes.take() ?? images.at(-1)?.home ?? assert.fail(), ...record() })
  }
  kubo.scripts.set('dag/import', async (_, __, proceed) => {
    await proceed()
    look()
  })
  await afterEachStep(look, async () => {
    const first = await open(t, kubo, { folder: home, now: () => now })
    for (const reference of ['a', 'b', 'c', 'd'] as const) {
      known.set(reference, undefined)
      known.set(reference, (await order(first, reference)).dealCid)
    }
    await first.stop()
    now += 20 * 30_000
    const second = await open(t, kubo, { folder: home, now: () => now })
    await second.stop()
  })
  for (const { home: left, now, known, pinned, blocks } of images) {
    const home = temporaryFolder(t)
    cpSync(left, home, { recursive: true })
    const node = await ScriptedKubo.start(t)
    for (const root of pinned) node.pinned.add(root)
    for (const [cid, block] of blocks) node.blocks.set(cid, block)
    const network = await open(t, node, { folder: home, now: () => now })
    const needed = new Set([foreignRoot])
    for (const [reference, dealCid] of known) {
      const found = await network.find(reference)
      if (dealCid !== undefined) t.equal(found?.dealCid, dealCid)
      const deal = await order(network, reference)
      if (found !== undefined) t.same(deal, found)
      if ((await network.status(deal.dealCid)).state === 'StorageDealActive') needed.add(deal.dataCid)
    }
    await until('exactly what deals need is pinned', () => [...node.pinned].sort().join() === [...needed].sort().join())
    t.same(readdirSync(join(home, 'staging')), [])
    await network.stop()
    t.same([...node.pinned].sort(), [...needed].sort())
    await node.close()
  }
})

t.test('a pin that another process makes is left alone', async (t) => {
  const folder = temporaryFolder(t)
  const place = { file: join(folder, 'network.db'), database: await databaseOf(folder) }
  const db = await openStore(kuboSchema, place, silentLog)
  t.teardown(() => db.close())
  const pinned = new Set<string>()
  const node = {
    isPinned: async (root: string) => pinned.has(root),
    unpin: async (root: string) => void pinned.delete(root),
  } as unknown as KuboNode
  const [one, other] = [new Pins(db, node, true), new Pins(db, node, true)]
  const failing = one.make(
    'root',
    async () => {
      pinned.add('root')
      await other.sweep()
      t.ok(pinned.has('root'), 'while it is made')
      throw new Error('failed')
    },
    new AbortController().signal,
  )
  await t.rejects(failing, /failed/)
  await db.transaction(({ pins }) => pins.note('root', Date.now() - HOUR_MS))
  await other.sweep()
  t.same([...pinned], [], 'what nobody asks for any more is removed')
  t.notOk(await db.read.pins.has('root'))
})

t.test('a gateway over a Kubo node backs a bucket up, gives its copies up and brings them back', async (t) => {
  const kubo = await ScriptedKubo.start(t)
  const client = new DealClient(await startGateway(t, {}, { kubo: kubo.url }))
  await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
  const bodies = new Map(['a', 'a/b', 'a//c', 'ü'].map((key) => [key, randomBytes(key.length * 400_000)]))
  const generations = new Map<string, string>()
  for (const [key, body] of bodies) generations.set(key, await client.put('bucket', key, body))
  const here = { MinerId: PEER_ID, Price: '0' }
  t.match(await client.deals('bucket'), { status: 'fail', message: new RegExp(PEER_ID) }, 'only with that node')
  const { data } = await client.deals('bucket', here)
  t.ok(kubo.pinned.has(data.dataCid))
  t.match(await client.deal('bucket', 'a', here), { status: 'success', data: { minerId: PEER_ID } })
  for (const [key, generation] of generations)
    t.match(await client.evict('bucket', key, generation), { status: 'success' }, `${key} is given up`)
  t.equal(await client.used(), 0)
  for (const [key, body] of bodies) {
    t.match(await client.retrieve('bucket', key), { status: 'success', message: 'The object has been brought back.' })
    t.ok((await client.gateway.get('bucket', key)).body.equals(body), `${key} is back`)
  }
  await t.rejects(start(temporaryFolder(t), {}, { kubo: kubo.url, control: true }), /cannot be controlled/)
})
