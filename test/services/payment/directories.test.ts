import { randomBytes } from 'node:crypto'
import { CarReader } from '@ipld/car'
import * as cbor from '@ipld/dag-cbor'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import t from 'tap'
import { type Block, CAR_TYPE, carOf, Dag, directoryCar, type Link } from './directory-car.js'
import { pass, payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

const HTML = '<!doctype html><title>Site</title>'
const LARGE = new Uint8Array(300_000).map((_, n) => (n * 7) % 251)

/** More entries than one block of a directory has. */
const MANY = 5000

const FILES = {
  'data/words': 'No extension, but words.',
  'data/page.pdf': '%PDF-1.7',
  'data/ą/ę/file-źł.txt': 'I am a file',
  'data/ą/ę/%2C+=& <b>.txt': 'odd',
  large: LARGE,
  ...Object.fromEntries(Array.from({ length: MANY }, (_, n) => [`many/a-name-of-some-length-${n}`, String(n % 3)])),
  'site/index.html': HTML,
  'site/style.css': 'p{}',
}

t.test('a directory, by the cases of the specification of path gateways', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const { car, cid } = await directoryCar(t, FILES)
  const { status, json } = await payer.upload('site.car', car, CAR_TYPE)
  t.equal(status, 200)
  const root: string = json.data.payload_cid
  t.ok(CID.parse(root).toV1().equals(CID.parse(cid)), 'the CID is that of the root')
  t.match(json.data, { w_cid: /^[0-9a-f-]{36}Qm/, ipfs_url: `${scene.payment.url}/ipfs/${root}` })
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${scene.payment.url}/ipfs/${path}`, { method, headers, redirect: 'manual' })
  const text = async (path: string): Promise<string> => (await get(path)).text()
  const reader = await CarReader.fromBytes(car)
  /** CID of what a path leads to. */
  const cidOf = async (path: string): Promise<string> =>
    (await get(`${root}/${path}?format=raw`, {}, 'HEAD')).headers.get('x-ipfs-roots')?.split(',').at(-1) ?? ''

  await t.test('redirects to the path with a slash', async (t) => {
    const response = await get(`${root}/data/ą/ę?x=1`)
    t.equal(response.status, 301)
    t.equal(response.headers.get('location'), `/ipfs/${root}/data/%C4%85/%C4%99/?x=1`)
  })

  await t.test('lists no directory', async (t) => {
    const response = await get(`${root}/data/%C4%85/%C4%99/`)
    t.equal(response.status, 406)
    t.match(await response.text(), /format=car/)
    t.equal((await get(`${root}?format=tar`)).status, 400)
  })

  await t.test('sends files by their paths', async (t) => {
    t.equal(await text(`${root}/data/ą/ę/file-źł.txt`), 'I am a file')
    t.equal(await text(`${root}/data/ą/ę/%252C+=&%20%3Cb%3E.txt`), 'odd')
    t.equal(await text(`${root}/many/a-name-of-some-length-4711`), '1')
    t.equal(await text(`${await cidOf('data/')}/words`), FILES['data/words'], 'below any directory')
    const part = await get(`${root}/large`, { range: 'bytes=262140-262150' })
    t.equal(part.status, 206)
    t.ok(Buffer.from(await part.arrayBuffer()).equals(Buffer.from(LARGE.subarray(262_140, 262_151))))
    for (const absent of ['data/nothing', 'large/nothing', 'many/nothing'])
      t.equal((await get(`${root}/${absent}`, {}, 'HEAD')).status, 404, absent)
    t.equal((await get(`${root}/%FF`)).status, 400)
  })

  await t.test('sends index.html for its directory', async (t) => {
    const response = await get(`${root}/site/`)
    t.equal(await response.text(), HTML)
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'public, max-age=29030400, immutable',
      'content-security-policy': /^sandbox/,
      etag: `"${await cidOf('site/')}"`,
    })
    t.equal(response.headers.get('x-ipfs-roots')?.split(',').length, 2)
    t.equal((await get(`${root}/site/`, { 'if-none-match': response.headers.get('etag') ?? '' })).status, 304)
  })

  await t.test('gives every content a sandbox, except PDFs', async (t) => {
    const policyOf = async (path: string) => {
      const { headers } = await get(`${root}/${path}`)
      t.equal(headers.get('x-content-type-options'), 'nosniff', path)
      return headers.get('content-security-policy')
    }
    for (const path of ['site/style.css', 'site?format=raw', 'site?format=car', 'data/page.pdf?format=raw'])
      t.match(await policyOf(path), /^sandbox allow-scripts /, path)
    t.equal(await policyOf('data/page.pdf'), null)
  })

  await t.test('sends blocks and CARs of paths', async (t) => {
    const block = Buffer.from(await (await get(`${root}/site?format=raw`)).arrayBuffer())
    const site = CID.parse(await cidOf('site/'))
    t.ok(block.equals(Buffer.from((await reader.get(site))?.bytes ?? [])))
    const blocks = async (path: string): Promise<string[]> => {
      const body = await CarReader.fromBytes(new Uint8Array(await (await get(`${root}/${path}`)).arrayBuffer()))
      const found: string[] = []
      for await (const { cid, bytes } of body.blocks()) {
        if (Buffer.compare((await sha256.digest(bytes)).digest, cid.multihash.digest) !== 0) t.fail(`${cid} is damaged`)
        found.push(cid.toString())
      }
      return found
    }
    const index = await cidOf('site/index.html')
    t.same(await blocks('site/index.html?format=car'), [root, site.toString(), index])
    t.same(await blocks('site?format=car&dag-scope=block'), [root, site.toString()])
    t.same(await blocks('site?format=car&dag-scope=entity'), [root, site.toString()])
    t.equal((await blocks('site?format=car')).length, 4)
    t.equal((await blocks('large?format=car&entity-bytes=0:5')).length, 3, 'the root, the file, its first leaf')
    const shards = await blocks('many?format=car&dag-scope=entity')
    const all = await blocks('many?format=car')
    t.equal(all.length - shards.length, 3, 'the blocks of the three contents are not of the directory')
    const through = await blocks('many/a-name-of-some-length-7?format=car')
    t.ok(through.length > 3 && through.length < 8, 'the shards that lead to a name')
  })
})

t.test('what is no CAR of a directory is refused', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const { car, cid } = await directoryCar(t, { 'a/b': 'x', c: 'y' })
  const dag = new Dag()
  const leaf = await dag.leaf('leaf')
  const liar = await dag.node('file', [['', leaf, 10]])
  const bytes = cbor.encode({ a: 1 })
  const document = { cid: CID.createV1(cbor.code, await sha256.digest(bytes)), bytes }
  const named = async (name: string): Promise<Buffer<ArrayBuffer>> => {
    const one = new Dag()
    return one.car(await one.node('directory', [[name, await one.leaf('leaf')]]))
  }
  const cases: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
    'no CAR': Buffer.from('not a CAR'),
    truncated: car.subarray(0, -3),
    damaged: Buffer.concat([car.subarray(0, -1), Buffer.from([car.at(-1) ?? 0]).map((byte) => byte ^ 1)]),
    'two roots': await carOf([CID.parse(cid), leaf.cid], []),
    'a file': await carOf([liar.cid], [liar, leaf]),
    'another codec': await carOf([document.cid], [document]),
    'a name that leads out': await named('..'),
    'no name': await named(''),
    'a name that no file can have': await named('a'.repeat(2000)),
  }
  for (const [name, content] of Object.entries(cases)) {
    const { status, json } = await payer.upload('x.car', content, CAR_TYPE)
    t.equal(status, 400, `${name}: ${json.message}`)
  }
  t.match(await payer.get('/storage/tasks/deals'), { total_record_count: 0 })

  const liars = await dag.car(await dag.node('directory', [['liar', liar]]))
  const { status, json } = await payer.upload('liar.car', liars, CAR_TYPE)
  t.equal(status, 200)
  const url = `${scene.payment.url}/ipfs/${json.data.payload_cid}/liar`
  await t.rejects(async () => (await fetch(url)).arrayBuffer(), 'a file that is shorter than its root says is cut off')
  const plain = await payer.upload('x.car', car)
  t.equal(plain.json.data.file_size, car.length, 'without the type of a CAR it is a file as any other')
})

t.test('a directory goes to a provider and comes back', async (t) => {
  const scene = await startPaymentScene(t, { limits: { maxStoredBytes: 2_000_000 } }, { withPlatform: true })
  const payer = await payerOf(scene)
  const noise = (size: number) => new Uint8Array(randomBytes(size))
  const { car, cid } = await directoryCar(t, { 'a/large': noise(600_000), 'a/small': 'small' })
  await payer.pay('first.car', car, 400_000n, CAR_TYPE)
  await pass(scene, payer, 'Success')
  t.equal((await payer.upload('second', noise(700_000))).status, 200)
  t.match(await payer.get('/storage/tasks/deals?is_ascend=y'), { source_file_upload: [{ pin_status: 'UnPinned' }] })
  t.equal(await (await fetch(`${scene.payment.url}/ipfs/${cid}/a/small`)).text(), 'small')
})

const LEVELS = 8
const DIGITS = Array.from({ length: 256 }, (_, n) => n.toString(16).toUpperCase().padStart(2, '0'))

t.test('a directory whose paths lead to nothing is given up', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const dag = new Dag()
  let shard = await dag.node('hamt-sharded-directory', [], 256n)
  for (let level = 0; level < LEVELS; level++)
    shard = await dag.node(
      'hamt-sharded-directory',
      DIGITS.map((digits): Link => [digits, shard]),
      256n,
    )
  const byte = await dag.leaf('x')
  let empty = await dag.node('file', [])
  let liar = empty
  for (let level = 0; level < LEVELS; level++) {
    empty = await dag.node(
      'file',
      DIGITS.map((): Link => ['', empty, 0]),
    )
    liar = await dag.node(
      'file',
      DIGITS.map((): Link => ['', liar, 1000]),
    )
  }
  const gap = await dag.node('file', [
    ['', byte, 1],
    ['', empty, 0],
    ['', byte, 1],
  ])
  const root = await dag.node('directory', [
    ['gap', gap],
    ['liar', liar],
    ['shards', shard],
  ])
  const { status, json } = await payer.upload('hostile.car', await dag.car(root), CAR_TYPE)
  t.equal(status, 200)
  const at = `${scene.payment.url}/ipfs/${json.data.payload_cid}`
  for (const path of [
    'shards/',
    'shards/nothing',
    'gap',
    'liar',
    'liar?format=car&dag-scope=entity&entity-bytes=900:*',
    '?format=car&dag-scope=all',
  ]) {
    // Either is an end: a refusal, or an answer that is cut.
    const ended = await fetch(`${at}/${path}`, { signal: AbortSignal.timeout(20_000) })
      .then((answer) => answer.arrayBuffer())
      .then(
        () => 'ended',
        (error) => (error.name === 'TimeoutError' ? 'busy' : 'ended'),
      )
    t.equal(ended, 'ended', path)
  }
  t.equal((await fetch(`${scene.payment.url}/api/v1/common/system/params`)).status, 200)
})

t.test('a CAR with duplicates of a directory that repeats itself at many levels breaks off', async (t) => {
  const limits = { maxArchiveEntries: 1000, maxArchiveBytes: 1_000_000 }
  const scene = await startPaymentScene(t, { limits })
  const payer = await payerOf(scene)
  const dag = new Dag()
  const rootOver = async (leaf: Block, levels: number): Promise<Block> => {
    let directory = leaf
    for (let level = 0; level < levels; level++)
      directory = await dag.node('directory', [
        ['a', directory],
        ['b', directory],
      ])
    return directory
  }
  const at = async (root: Block): Promise<string> => {
    const { json } = await payer.upload('repeated.car', await dag.car(root), CAR_TYPE)
    return `${scene.payment.url}/ipfs/${json.data.payload_cid}`
  }
  const size = async (url: string): Promise<number> =>
    (await (await fetch(url, { signal: AbortSignal.timeout(20_000) })).arrayBuffer()).byteLength
  const small = await dag.leaf('x')
  const [whole, many, much] = await Promise.all([
    rootOver(small, 8).then(at),
    rootOver(small, 30).then(at),
    dag.leaf(new Uint8Array(20_000)).then(async (leaf) => at(await rootOver(leaf, 6))),
  ])
  t.ok((await size(`${whole}?format=car&car-dups=y`)) > 511 * 40, 'a block for each path, within the bounds')
  for (const url of [many, much]) await t.rejects(size(`${url}?format=car&car-dups=y`), { name: 'TypeError' })
  t.ok((await size(`${many}?format=car`)) < 10_000, 'each block once')
})
