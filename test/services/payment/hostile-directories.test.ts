import { readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { CarWriter } from '@ipld/car'
import * as pb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import t from 'tap'
import { until } from '../../support/waiting.js'
import { CAR_TYPE } from './directory-car.js'
import { payerOf } from './payer.js'
import { newKeys, startPaymentScene } from './payment-client.js'

// Directories of a few blocks with more paths than anything can walk.

interface Block {
  readonly cid: CID
  readonly bytes: Uint8Array
}

type Link = readonly [name: string, to: Block, size?: number]

const LEVELS = 30
const DIGITS = Array.from({ length: 256 }, (_, n) => n.toString(16).toUpperCase().padStart(2, '0'))

class Dag {
  readonly blocks = new Map<string, Block>()

  async leaf(content: string | Uint8Array): Promise<Block> {
    const bytes = Buffer.from(content)
    return this.#add(bytes, raw.code)
  }

  async node(
    type: 'file' | 'directory' | 'hamt-sharded-directory',
    links: readonly Link[],
    fanout?: bigint,
  ): Promise<Block> {
    const blockSizes = type === 'file' ? links.map(([, , size = 0]) => BigInt(size)) : undefined
    const data = new UnixFS({ type, ...(blockSizes && { blockSizes }), ...(fanout && { fanout, hashType: 0x22n }) })
    const Links = links.map(([Name, { cid }]) => ({ Name, Hash: cid, Tsize: 0 }))
    return this.#add(pb.encode({ Data: data.marshal(), Links }), pb.code)
  }

  async car(root: Block): Promise<Buffer<ArrayBuffer>> {
    const { writer, out } = CarWriter.create([root.cid])
    const written = (async () => {
      for (const block of this.blocks.values()) await writer.put(block)
      await writer.close()
    })()
    const parts: Uint8Array[] = []
    for await (const part of out) parts.push(part)
    await written
    return Buffer.concat(parts)
  }

  async #add(bytes: Uint8Array, code: number): Promise<Block> {
    const block = { cid: CID.createV1(code, await sha256.digest(bytes)), bytes }
    this.blocks.set(block.cid.toString(), block)
    return block
  }
}

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
    rootOver(small, LEVELS).then(at),
    dag.leaf(new Uint8Array(20_000)).then(async (leaf) => at(await rootOver(leaf, 6))),
  ])
  t.ok((await size(`${whole}?format=car&car-dups=y`)) > 511 * 40, 'a block for each path, within the bounds')
  for (const url of [many, much]) await t.rejects(size(`${url}?format=car&car-dups=y`), { name: 'TypeError' })
  let bytes = 0
  const { body } = await fetch(`${many}?format=car&car-dups=y`, { signal: AbortSignal.timeout(20_000) })
  await t.rejects(async () => {
    for await (const chunk of body ?? []) bytes += chunk.length
  })
  t.ok(bytes < limits.maxArchiveBytes / 2, `${bytes} bytes: broken off by the number of its blocks`)
  t.ok((await size(`${many}?format=car`)) < 10_000, 'each block once')
})

t.test('a part of a file that repeats one block is sent as a CAR at once', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const dag = new Dag()
  let file = await dag.leaf('x')
  let size = 1
  for (let level = 0; level < 5; level++) {
    file = await dag.node(
      'file',
      DIGITS.map((): Link => ['', file, size]),
    )
    size *= DIGITS.length
  }
  const root = await dag.node('directory', [['zeros', file]])
  const { json } = await payer.upload('zeros.car', await dag.car(root), CAR_TYPE)
  const at = `${scene.payment.url}/ipfs/${json.data.payload_cid}/zeros`
  const car = `${at}?format=car&car-dups=n&entity-bytes=`
  const bytesOf = async (url: string) =>
    (await (await fetch(url, { signal: AbortSignal.timeout(20_000) })).arrayBuffer()).byteLength
  t.equal(await bytesOf(`${car}0:*`), await bytesOf(`${car}300:-700`), 'all of its blocks')
  const part = await fetch(at, { headers: { range: 'bytes=1000000-1000003' } })
  t.equal(await part.text(), 'xxxx')
})

t.test('the blocks of a directory are left when its client leaves', async (t) => {
  const scene = await startPaymentScene(t)
  const token = await scene.signIn(newKeys())
  const dag = new Dag()
  const folders: Link[] = []
  for (let n = 0; n < 80; n++) {
    const files = await Promise.all(DIGITS.map(async (name): Promise<Link> => [name, await dag.leaf(`${n} ${name}`)]))
    folders.push([String(n).padStart(2, '0'), await dag.node('directory', files)])
  }
  const car = await dag.car(await dag.node('directory', folders))
  const head = `--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\nContent-Type: ${CAR_TYPE}\r\n\r\n`
  const terms = '--x\r\nContent-Disposition: form-data; name="duration"\r\n\r\n525\r\n'
  const body = Buffer.concat([Buffer.from(terms + head), car, Buffer.from('\r\n--x--\r\n')])
  const headers = { 'content-type': 'multipart/form-data; boundary=x', authorization: `Bearer ${token}` }
  const upload = request(`${scene.payment.url}/api/v1/storage/ipfs/upload`, { method: 'POST', headers })
  upload.on('error', () => {})
  upload.end(body)
  const staging = join(scene.folder, 'staging')
  const files = () => readdirSync(staging, { recursive: true, encoding: 'utf8' })
  await until('its blocks are copied', () =>
    files().some((name) => /content\.car(\.\w+)?$/.test(name) && !name.endsWith('.received')),
  )
  upload.destroy()
  await until('the upload has ended', () => files().length === 0)
  t.same(readdirSync(join(scene.folder, 'contents')), [], 'nothing is kept of it')
})

t.test('a path has a bounded number of names', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const dag = new Dag()
  let directory = await dag.leaf('x')
  for (let level = 0; level < 130; level++) directory = await dag.node('directory', [['d', directory]])
  const { json } = await payer.upload('deep.car', await dag.car(directory), CAR_TYPE)
  const at = (levels: number) => fetch(`${scene.payment.url}/ipfs/${json.data.payload_cid}${'/d'.repeat(levels)}/`)
  t.equal((await at(128)).status, 406)
  t.equal((await at(129)).status, 400)
})

t.test('names that no file can have are refused', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const dag = new Dag()
  const byte = await dag.leaf('x')
  const root = await dag.node('directory', [['a'.repeat(2000), byte]])
  const { status, json } = await payer.upload('long.car', await dag.car(root), CAR_TYPE)
  t.equal(status, 400)
  t.match(JSON.stringify(json), /has a name/)
})

t.test('a file whose bytes are those of a node is no directory with names that lead out of it', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const dag = new Dag()
  const byte = await dag.leaf('x')
  const links = [
    ['..', byte],
    ['../../escaped', byte],
    ['/absolute', byte],
  ] as const
  const node = await dag.node('directory', links)
  const shard = await dag.node(
    'hamt-sharded-directory',
    links.map(([name, to]): Link => [`00${name}`, to]),
    256n,
  )
  const raws = await Promise.all([node, shard].map(({ bytes }) => dag.leaf(bytes)))
  dag.blocks.delete(node.cid.toString())
  dag.blocks.delete(shard.cid.toString())
  const root = await dag.node('directory', [['byte', byte], ...raws.map((file, n): Link => [`file-${n}`, file])])
  const { status } = await payer.upload('hostile.car', await dag.car(root), CAR_TYPE)
  t.equal(status, 200)
  for (const { cid } of [node, shard]) {
    t.equal((await fetch(`${scene.payment.url}/ipfs/${cid}/byte`)).status, 404)
  }
})
