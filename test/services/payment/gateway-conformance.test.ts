import { createHash } from 'node:crypto'
import { CarReader } from '@ipld/car'
import { CID } from 'multiformats/cid'
import { identity } from 'multiformats/hashes/identity'
import t from 'tap'
import { CAR_TYPE as CAR } from './directory-car.js'
import { payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

/** A CID of content that the gateway does not have. */
const ABSENT = 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'
const RAW = 'application/vnd.ipld.raw'
/** More than one block. */
const SIZE = 300_000

interface Expected {
  /** Default 200. */
  readonly status?: number
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
  /** Default: that of the file. */
  readonly path?: string
  readonly query?: string
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
  return [
    // Path gateway, files.
    { name: 'GET returns the file', bytes: [0, SIZE], headers: { ...file, 'content-location': null } },
    { name: 'HEAD', method: 'HEAD', headers: { ...file, 'content-length': String(SIZE) } },
    { name: 'GET of CIDv1 of the same block', path: `/ipfs/${CID.parse(cid).toV1()}`, bytes: [0, SIZE] },
    {
      name: 'Range of single bytes',
      send: { range: 'bytes=6-16' },
      status: 206,
      bytes: [6, 17],
      headers: { 'content-range': `bytes 6-16/${SIZE}` },
    },
    { name: 'Range across blocks', send: { range: 'bytes=262140-262150' }, status: 206, bytes: [262_140, 262_151] },
    {
      name: 'Range beyond the end',
      send: { range: `bytes=${SIZE}-` },
      status: 416,
      headers: { 'content-range': `bytes */${SIZE}` },
    },
    { name: 'If-Range', send: { range: 'bytes=0-1', 'if-range': `"${cid}"` }, status: 206, bytes: [0, 2] },
    { name: 'If-None-Match', send: { 'if-none-match': `"${cid}"` }, status: 304 },
    { name: 'If-None-Match of a list', send: { 'if-none-match': `"x", "${cid}"` }, status: 304 },
    {
      name: 'filename',
      query: `?filename=test%D1%82%D0%B5%D1%81%D1%82.pdf`,
      headers: {
        'content-disposition': `inline; filename="test____.pdf"; filename*=UTF-8''test%D1%82%D0%B5%D1%81%D1%82.pdf`,
      },
    },
    { name: 'ipfs:// URI', headers: { 'ipfs-uri': `ipfs://${cid}` } },
    { name: 'Service-Worker for a content root', send: { 'service-worker': 'script' }, status: 400 },
    { name: 'invalid CID', path: '/ipfs/foobar', status: 400, headers: none },
    { name: 'no CID', path: '/ipfs/', status: 400 },
    { name: 'a name below a file', path: `${own}/index.html`, status: 404 },
    { name: 'absent content', path: `/ipfs/${ABSENT}`, status: 404, headers: none },
    {
      name: 'only-if-cached, absent',
      method: 'HEAD',
      path: `/ipfs/${ABSENT}`,
      send: { 'cache-control': 'only-if-cached' },
      status: 412,
    },
    { name: 'POST', method: 'POST', status: 405, headers: { allow: /GET/ } },
    { name: 'OPTIONS', method: 'OPTIONS', status: 204, headers: { 'access-control-allow-origin': '*' } },
    { name: 'unknown format', query: `?format=unknown`, status: 400 },
    // Trustless gateway, blocks.
    {
      name: 'format=raw',
      query: `?format=raw`,
      headers: { ...raw, 'content-disposition': /^attachment; filename="Qm\w+\.bin"/, 'content-location': null },
    },
    {
      name: 'Accept: raw',
      send: { accept: RAW },
      headers: { ...raw, 'content-location': `${own}?format=raw`, vary: /accept/i },
    },
    { name: 'format before Accept', query: `?format=raw`, send: { accept: CAR }, headers: raw },
    { name: 'raw, If-None-Match', query: `?format=raw`, send: { 'if-none-match': `"${cid}.raw"` }, status: 304 },
    // Trustless gateway, CARs.
    {
      name: 'format=car',
      query: `?format=car`,
      blocks: 3,
      headers: {
        ...car,
        'content-disposition': /^attachment; filename="Qm\w+\.car"/,
        'accept-ranges': 'none',
        etag: /^W\//,
      },
    },
    { name: 'dag-scope=block', query: `?format=car&dag-scope=block`, blocks: 1 },
    { name: 'dag-scope=entity', query: `?format=car&dag-scope=entity`, blocks: 3 },
    { name: 'unknown dag-scope', query: `?format=car&dag-scope=x`, status: 400 },
    { name: 'entity-bytes of everything', query: `?format=car&dag-scope=entity&entity-bytes=0:*`, blocks: 3 },
    { name: 'entity-bytes of the first block', query: `?format=car&dag-scope=entity&entity-bytes=0:5`, blocks: 2 },
    { name: 'entity-bytes from the end', query: `?format=car&dag-scope=entity&entity-bytes=-5:*`, blocks: 2 },
    { name: 'entity-bytes that are none', query: `?format=car&entity-bytes=x:y`, status: 400 },
    { name: 'unknown version of a CAR', query: `?format=car&car-version=2`, status: 400 },
    {
      name: 'identity CID',
      path: `/ipfs/${CID.createV1(0x55, identity.digest(Buffer.from('hello')))}?format=car`,
      blocks: 0,
    },
  ]
}

t.test('cases of the specification of IPFS gateways', async (t) => {
  const scene = await startPaymentScene(t)
  const content = Buffer.from(Array.from({ length: SIZE }, (_, i) => (i * 7 + (i >> 9)) % 251))
  const { json } = await (await payerOf(scene)).upload('file', new Uint8Array(content))
  const cid: string = json.data.payload_cid
  for (const { name, method = 'GET', path = `/ipfs/${cid}`, query = '', send = {}, ...expected } of casesOf(cid)) {
    await t.test(name, async (t) => {
      const response = await fetch(scene.payment.url + path + query, { method, headers: send })
      const body = Buffer.from(await response.arrayBuffer())
      t.equal(response.status, expected.status ?? 200)
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
