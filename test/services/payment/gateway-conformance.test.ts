import { createHash } from 'node:crypto'
import { CarReader } from '@ipld/car'
import { CID } from 'multiformats/cid'
import { identity } from 'multiformats/hashes/identity'
import t from 'tap'
import { payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

/** A CID of content that the gateway does not have. */
const ABSENT = 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'
const RAW = 'application/vnd.ipld.raw'
const CAR = 'application/vnd.ipld.car'
/** More than one block. */
const SIZE = 300_000

interface Expected {
  readonly status: number
  readonly headers?: Readonly<Record<string, string | RegExp | null>>
  /** Bytes of the file, first and one after the last. */
  readonly bytes?: readonly [number, number]
  /** Number of blocks in the CAR. */
  readonly blocks?: number
}

interface Case extends Expected {
  /** As the specification or the conformance suite (github.com/ipfs/gateway-conformance) calls it. */
  readonly name: string
  readonly method?: string
  readonly path: string
  readonly send?: Readonly<Record<string, string>>
}

/** Cases of the path gateway and the trustless gateway for files: https://specs.ipfs.tech/http-gateways/ */
function casesOf(cid: string): readonly Case[] {
  const own = `/ipfs/${cid}`
  const immutable = { 'cache-control': 'public, max-age=29030400, immutable' }
  const roots = { 'x-ipfs-path': own, 'x-ipfs-roots': cid }
  const file = { ...immutable, ...roots, etag: `"${cid}"`, 'accept-ranges': 'bytes' }
  const raw = { ...immutable, 'content-type': RAW, 'x-content-type-options': 'nosniff', etag: `"${cid}.raw"` }
  const car = {
    ...immutable,
    'content-type': /^application\/vnd\.ipld\.car; ?version=1/,
    'x-content-type-options': 'nosniff',
  }
  const none = { etag: null, 'x-ipfs-roots': null }
  const inline = { 'content-disposition': /^inline/ }
  return [
    // Path gateway, files.
    {
      name: 'GET returns the file',
      path: own,
      status: 200,
      bytes: [0, SIZE],
      headers: { ...file, 'content-location': null },
    },
    { name: 'GET with a trailing slash', path: `${own}/`, status: 200, bytes: [0, SIZE] },
    { name: 'HEAD', method: 'HEAD', path: own, status: 200, headers: { ...file, 'content-length': String(SIZE) } },
    { name: 'GET of CIDv1 of the same block', path: `/ipfs/${CID.parse(cid).toV1()}`, status: 200, bytes: [0, SIZE] },
    {
      name: 'Range of single bytes',
      path: own,
      send: { range: 'bytes=6-16' },
      status: 206,
      bytes: [6, 17],
      headers: { 'content-range': `bytes 6-16/${SIZE}` },
    },
    {
      name: 'Range across blocks',
      path: own,
      send: { range: 'bytes=262140-262150' },
      status: 206,
      bytes: [262_140, 262_151],
    },
    { name: 'Range of a suffix', path: own, send: { range: 'bytes=-9' }, status: 206, bytes: [SIZE - 9, SIZE] },
    {
      name: 'several ranges',
      path: own,
      send: { range: 'bytes=6-16,0-4' },
      status: 206,
      bytes: [6, 17],
      headers: { 'content-range': `bytes 6-16/${SIZE}` },
    },
    {
      name: 'Range beyond the end',
      path: own,
      send: { range: `bytes=${SIZE}-` },
      status: 416,
      headers: { 'content-range': `bytes */${SIZE}` },
    },
    {
      name: 'HEAD with Range',
      method: 'HEAD',
      path: own,
      send: { range: 'bytes=0-9' },
      status: 206,
      headers: { 'content-length': '10' },
    },
    { name: 'If-None-Match', path: own, send: { 'if-none-match': `"${cid}"` }, status: 304 },
    { name: 'If-None-Match, weak', path: own, send: { 'if-none-match': `W/"${cid}"` }, status: 304 },
    { name: 'If-None-Match of a list', path: own, send: { 'if-none-match': `"x", "${cid}"` }, status: 304 },
    { name: 'If-None-Match with *', path: own, send: { 'if-none-match': '*' }, status: 304 },
    {
      name: 'If-None-Match of another',
      path: own,
      send: { 'if-none-match': '"other"' },
      status: 200,
      bytes: [0, SIZE],
    },
    {
      name: 'filename',
      path: `${own}?filename=test%D1%82%D0%B5%D1%81%D1%82.pdf`,
      status: 200,
      headers: {
        'content-disposition': `inline; filename="test____.pdf"; filename*=UTF-8''test%D1%82%D0%B5%D1%81%D1%82.pdf`,
      },
    },
    {
      name: 'download',
      path: `${own}?download=true&filename=a.pdf`,
      status: 200,
      headers: { 'content-disposition': /^attachment; filename="a\.pdf"/ },
    },
    { name: 'download=false', path: `${own}?download=false&filename=a.pdf`, status: 200, headers: inline },
    { name: 'ipfs:// URI', path: own, status: 200, headers: { 'ipfs-uri': `ipfs://${cid}` } },
    { name: 'Service-Worker for a content root', path: own, send: { 'service-worker': 'script' }, status: 400 },
    { name: 'invalid CID', path: '/ipfs/foobar', status: 400, headers: none },
    { name: 'no CID', path: '/ipfs/', status: 400 },
    { name: 'a name below a file', path: `${own}/index.html`, status: 404 },
    { name: 'absent content', path: `/ipfs/${ABSENT}`, status: 404, headers: none },
    { name: 'absent content, HEAD', method: 'HEAD', path: `/ipfs/${ABSENT}`, status: 404 },
    {
      name: 'only-if-cached, absent',
      method: 'HEAD',
      path: `/ipfs/${ABSENT}`,
      send: { 'cache-control': 'only-if-cached' },
      status: 412,
    },
    {
      name: 'only-if-cached, present',
      method: 'HEAD',
      path: own,
      send: { 'cache-control': 'only-if-cached' },
      status: 200,
    },
    { name: 'POST', method: 'POST', path: own, status: 405, headers: { allow: /GET/ } },
    { name: 'OPTIONS', method: 'OPTIONS', path: own, status: 204, headers: { 'access-control-allow-origin': '*' } },
    { name: 'unknown format', path: `${own}?format=unknown`, status: 400 },
    // Trustless gateway, blocks.
    {
      name: 'format=raw',
      path: `${own}?format=raw`,
      status: 200,
      headers: { ...raw, 'content-disposition': /^attachment; filename="Qm\w+\.bin"/, 'content-location': null },
    },
    {
      name: 'Accept: raw',
      path: own,
      send: { accept: RAW },
      status: 200,
      headers: { ...raw, 'content-location': `${own}?format=raw`, vary: /accept/i },
    },
    {
      name: 'Accept: raw, with a file name',
      path: `${own}?filename=foobar.bin`,
      send: { accept: RAW },
      status: 200,
      headers: {
        'content-disposition': /^attachment; filename="foobar\.bin"/,
        'content-location': `${own}?filename=foobar.bin&format=raw`,
      },
    },
    {
      name: 'format before Accept',
      path: `${own}?format=raw`,
      send: { accept: CAR },
      status: 200,
      headers: { ...raw, 'content-location': `${own}?format=raw` },
    },
    { name: 'raw, If-None-Match', path: `${own}?format=raw`, send: { 'if-none-match': `"${cid}.raw"` }, status: 304 },
    {
      name: 'raw, If-None-Match of the file',
      path: `${own}?format=raw`,
      send: { 'if-none-match': `"${cid}"` },
      status: 200,
    },
    { name: 'raw, absent', path: `/ipfs/${ABSENT}?format=raw`, status: 404 },
    // Trustless gateway, CARs.
    {
      name: 'format=car',
      path: `${own}?format=car`,
      status: 200,
      blocks: 3,
      headers: {
        ...car,
        'content-disposition': /^attachment; filename="Qm\w+\.car"/,
        'accept-ranges': 'none',
        etag: /^W\//,
      },
    },
    {
      name: 'Accept: car',
      path: own,
      send: { accept: `${CAR}; version=1; order=dfs; dups=y` },
      status: 200,
      blocks: 3,
      headers: { ...car, 'content-location': `${own}?format=car` },
    },
    { name: 'HEAD of a CAR', method: 'HEAD', path: `${own}?format=car`, status: 200, headers: car },
    { name: 'dag-scope=block', path: `${own}?format=car&dag-scope=block`, status: 200, blocks: 1 },
    { name: 'dag-scope=entity', path: `${own}?format=car&dag-scope=entity`, status: 200, blocks: 3 },
    { name: 'dag-scope=all', path: `${own}?format=car&dag-scope=all`, status: 200, blocks: 3 },
    { name: 'unknown dag-scope', path: `${own}?format=car&dag-scope=x`, status: 400 },
    {
      name: 'entity-bytes of everything',
      path: `${own}?format=car&dag-scope=entity&entity-bytes=0:*`,
      status: 200,
      blocks: 3,
    },
    {
      name: 'entity-bytes of the first block',
      path: `${own}?format=car&dag-scope=entity&entity-bytes=0:5`,
      status: 200,
      blocks: 2,
    },
    {
      name: 'entity-bytes from the end',
      path: `${own}?format=car&dag-scope=entity&entity-bytes=-5:*`,
      status: 200,
      blocks: 2,
    },
    {
      name: 'entity-bytes beyond the end',
      path: `${own}?format=car&dag-scope=entity&entity-bytes=5:${10 * SIZE}`,
      status: 200,
      blocks: 3,
    },
    { name: 'entity-bytes that are none', path: `${own}?format=car&entity-bytes=x:y`, status: 400 },
    { name: 'unknown version of a CAR', path: `${own}?format=car&car-version=2`, status: 400 },
    { name: 'CAR, absent', path: `/ipfs/${ABSENT}?format=car`, status: 404 },
    {
      name: 'identity CID',
      path: `/ipfs/${CID.createV1(0x55, identity.digest(Buffer.from('hello')))}?format=car`,
      status: 200,
      blocks: 0,
    },
  ]
}

t.test('cases of the specification of IPFS gateways', async (t) => {
  const scene = await startPaymentScene(t)
  const content = Buffer.from(Array.from({ length: SIZE }, (_, i) => (i * 7 + (i >> 9)) % 251))
  const { json } = await (await payerOf(scene)).upload('file', new Uint8Array(content))
  const cid: string = json.data.payload_cid
  for (const { name, method = 'GET', path, send = {}, ...expected } of casesOf(cid)) {
    await t.test(name, async (t) => {
      const response = await fetch(scene.payment.url + path, { method, headers: send })
      const body = Buffer.from(await response.arrayBuffer())
      t.equal(response.status, expected.status)
      for (const [header, value] of Object.entries(expected.headers ?? {})) {
        const found = response.headers.get(header)
        if (value instanceof RegExp) t.match(found, value, header)
        else t.equal(found, value, header)
      }
      if (method === 'HEAD') t.equal(body.length, 0)
      if (expected.bytes) t.ok(body.equals(content.subarray(...expected.bytes)))
      if (expected.blocks !== undefined) t.equal(await verified(body), expected.blocks)
    })
  }
})

/** The number of blocks of a CAR, each of which must have its hash. */
async function verified(body: Uint8Array): Promise<number> {
  const car = await CarReader.fromBytes(body)
  let blocks = 0
  for await (const { cid, bytes } of car.blocks()) {
    if (!createHash('sha256').update(bytes).digest().equals(cid.multihash.digest)) throw new Error(`${cid} is damaged`)
    blocks++
  }
  return blocks
}
