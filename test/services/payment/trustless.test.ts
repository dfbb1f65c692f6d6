import { CarReader } from '@ipld/car'
import { CID } from 'multiformats/cid'
import { identity } from 'multiformats/hashes/identity'
import t from 'tap'
import { payerOf } from './payer.js'
import { startPaymentScene } from './payment-client.js'

const CHUNK = 262_144

t.test('the gateway of contents, as the conformance cases of IPFS gateways ask', async (t) => {
  const scene = await startPaymentScene(t)
  // Four leaves, of which the first and the third are the same.
  const leaf = (seed: number, bytes = CHUNK): Buffer => Buffer.alloc(bytes, `leaf ${seed} `)
  const content = Buffer.concat([leaf(1), leaf(2), leaf(1), leaf(3, 100)])
  const { json } = await (await payerOf(scene)).upload('file', new Uint8Array(content))
  const cid: string = json.data.payload_cid
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${scene.payment.url}/ipfs/${path}`, { method, headers })
  /** The blocks of a CAR, by the numbers of the leaves; 0 is the root. */
  const blocks = async (response: Response): Promise<number[]> => {
    t.equal(response.status, 200)
    const car = await CarReader.fromBytes(new Uint8Array(await response.arrayBuffer()))
    const found: number[] = []
    for await (const { cid: one, bytes } of car.blocks()) {
      const text = Buffer.from(bytes).toString('latin1')
      found.push(String(one) === cid ? 0 : Number(/leaf (\d)/.exec(text)?.[1]))
    }
    return found
  }
  const car = (query = '', accept?: string) =>
    get(`${cid}?format=car${query}`, accept === undefined ? {} : { accept: `application/vnd.ipld.car; ${accept}` })

  await t.test('duplicates and order', async (t) => {
    t.same(await blocks(await car()), [0, 1, 2, 3])
    for (const response of [await car('&car-dups=y'), await car('', 'version=1; order=dfs; dups=y')]) {
      t.match(response.headers.get('content-type'), /order=dfs; dups=y$/)
      t.same(await blocks(response), [0, 1, 2, 1, 3])
    }
    t.match((await car('', 'order=unk; dups=n')).headers.get('content-type'), /order=dfs; dups=n$/)
    for (const query of ['&car-version=2', '&car-dups=x', '&car-order=bfs', '&entity-bytes=1', '&entity-bytes=a:b']) {
      t.equal((await car(query)).status, 400, query)
    }
  })

  await t.test('bytes of an entity', async (t) => {
    const spans: readonly [string, number[]][] = [
      ['0:*', [0, 1, 2, 3]],
      ['0:0', [0, 1]],
      [`${CHUNK}:*`, [0, 2, 1, 3]],
      [`${CHUNK}:${CHUNK}`, [0, 2]],
      [`${CHUNK - 1}:${CHUNK}`, [0, 1, 2]],
      [`${CHUNK}:-101`, [0, 2, 1]],
      ['-5:*', [0, 3]],
      ['-9999999:-101', [0, 1, 2]],
      ['5:4', [0]],
      ['9999999:*', [0]],
    ]
    for (const [bytes, expected] of spans) {
      t.same(await blocks(await car(`&dag-scope=entity&entity-bytes=${bytes}`)), expected, bytes)
    }
    const etags = await Promise.all(
      ['', '&dag-scope=block', '&car-dups=y', '&entity-bytes=0:5', '&entity-bytes=0:6'].map(
        async (query) => (await car(query)).headers.get('etag') ?? '',
      ),
    )
    t.equal(new Set(etags).size, etags.length, 'other CARs have other entity tags')
    t.ok(etags.every((etag) => etag.startsWith('W/"')))
  })

  await t.test('CIDs that contain their content', async (t) => {
    const hello = CID.createV1(0x55, identity.digest(Buffer.from('hello'))).toString()
    const response = await get('bafkqabtimvwgy3yk/')
    t.equal(await response.text(), 'hello\n')
    t.equal(await (await get(`${hello}?format=raw`)).text(), 'hello')
    t.equal(await (await get(hello, { range: 'bytes=1-2' })).text(), 'el')
    const virtual = await get(hello, { accept: 'application/vnd.ipld.car; dups=y' })
    t.same(await blocks(virtual), [], 'such a block is never in a CAR')
  })

  await t.test('headers', async (t) => {
    for (const response of [await get(cid), await get(cid, {}, 'OPTIONS')]) {
      t.match(Object.fromEntries(response.headers), {
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD, OPTIONS',
        'access-control-allow-headers': /Content-Type.*Range.*User-Agent.*X-Requested-With/,
        'access-control-expose-headers': /Content-Length, Content-Range.*Ipfs-Uri.*X-Chunked-Output.*X-Ipfs-Roots/,
      })
      await response.arrayBuffer()
    }
    t.equal((await get(cid, {}, 'OPTIONS')).status, 204)
    t.equal((await get(cid, {}, 'HEAD')).headers.get('ipfs-uri'), `ipfs://${cid}`)
    const named = await get(`${cid}?format=raw&filename=${encodeURIComponent('a"é.bin')}`, {}, 'HEAD')
    t.equal(named.headers.get('content-disposition'), `attachment; filename="a__.bin"; filename*=UTF-8''a%22%C3%A9.bin`)
    t.equal((await get(cid, { 'service-worker': 'script' })).status, 400)
    t.equal((await get(cid, { 'if-none-match': '*' })).status, 304)
    const part = await get(`${cid}?format=raw`, { range: 'bytes=0-3' })
    t.equal(part.status, 206)
    t.equal((await part.arrayBuffer()).byteLength, 4)
  })
})
