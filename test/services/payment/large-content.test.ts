import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { CID } from 'multiformats/cid'
import t, { type Test } from 'tap'
import { uploadForm } from '../../../services/payment/uploads/upload.js'
import type { MultipartForm } from '../../../services/rest/form.js'
import { until } from '../../support/waiting.js'
import { CAR_TYPE, directoryCar } from './directory-car.js'
import { payerOf } from './payer.js'
import { type Keys, newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

t.setTimeout(3_600_000)

const MIB = 2 ** 20
/** Of `ipfs add`. */
const CHUNK_BYTES = MIB / 4

/**
 * CIDs by `ipfs add -Q --only-hash` of Kubo 0.24.0 for the bytes of `chunks`. Kubo is built by
 * `go build github.com/ipfs/kubo/cmd/ipfs` in a module that requires v0.24.0.
 */
const OF_KUBO: readonly (readonly [length: number, cid: string])[] = [
  [0, 'QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH'],
  [1, 'QmS9JArPwa55ePgDnyg6TzX24mYTS1b1vLqWNebyVotKxQ'],
  [CHUNK_BYTES, 'QmeibWAcGHXZf3ZDYiMZ2x4PXLM7s6NVjUKBBpmEwYywPM'],
  [CHUNK_BYTES + 1, 'QmYDkXjKy3WVrzLEDRwwK7kf4dDjNsJq6BLbPgcQqRWf8L'],
  [64 * MIB, 'QmUso5sGRDgkE9FQd59xFMGgupYf4wTYj31p7YccVsoRMQ'],
]

/** `npm run stress` also uploads 1 GiB. */
const LARGEST = [1024 * MIB, 'QmXVHQmroucWDRsYgrthy5RPqtVSGu92zsaUhv7U2BBqZB'] as const
const VECTORS = process.env.DEALGATE_STRESS_ROUNDS === undefined ? OF_KUBO : [...OF_KUBO, LARGEST]

/** Chunks that all differ. */
function* chunks(length: number): Iterable<Uint8Array> {
  const chunk = Buffer.alloc(CHUNK_BYTES, 'a chunk ')
  for (let at = 0; at < length; at += CHUNK_BYTES) {
    chunk.writeUInt32BE(at / CHUNK_BYTES)
    yield chunk.subarray(0, Math.min(CHUNK_BYTES, length - at))
  }
}

/** A form with one file, made as it is sent. */
function* form(wallet: string, length: number): Iterable<Uint8Array> {
  const part = (head: string, text = ''): Buffer =>
    Buffer.from(`--x\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}`)
  yield part('name="duration"', '525\r\n')
  yield part('name="wallet_address"', `${wallet}\r\n`)
  yield part('name="file"; filename="large"')
  for (const chunk of chunks(length)) yield Uint8Array.from(chunk)
  yield Buffer.from('\r\n--x--\r\n')
}

for (const [length, cid] of VECTORS) {
  t.test(`an upload of ${length} bytes has the CID of Kubo`, async (t) => {
    const { payment } = await startPaymentScene(t, { mode: 'open' })
    const response = await fetch(`${payment.url}/api/v1/storage/ipfs/upload`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: ReadableStream.from(form(newKeys().address, length)),
      duplex: 'half',
    })
    t.equal(response.status, 200)
    const { data } = (await response.json()) as { data: { payload_cid: string; file_size: number; ipfs_url: string } }
    t.match(data, { payload_cid: cid, file_size: length })
    const last = await fetch(data.ipfs_url, { headers: { range: 'bytes=-1' } })
    if (length > 0) t.equal(last.headers.get('content-range'), `bytes ${length - 1}-${length - 1}/${length}`)
    t.equal((await last.arrayBuffer()).byteLength, Math.min(length, 1))
  })
}

const UPLOAD = '/api/v1/storage/ipfs/upload'

/** Begins an upload and leaves it. */
function begin(t: Test, scene: PaymentScene, headers: Readonly<Record<string, string>>): Socket {
  const socket = connect(Number(new URL(scene.payment.url).port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  const all = { Host: 'x', 'Content-Type': 'multipart/form-data; boundary=x', 'Content-Length': '99999', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${UPLOAD} HTTP/1.1\r\n${lines.join('')}\r\n`)
  socket.write('--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nbytes')
  return socket
}

const arriving = (scene: PaymentScene): number => readdirSync(join(scene.folder, 'staging')).length

const tokenOf = async (scene: PaymentScene, keys: Keys) => ({ Authorization: `Bearer ${await scene.signIn(keys)}` })

t.test('a wallet that holds all its slots does not keep others out', async (t) => {
  const scene = await startPaymentScene(t, { limits: { concurrentUploads: 4, uploadsPerWallet: 2 } })
  const keys = newKeys()
  const slow = await tokenOf(scene, keys)
  const sockets = Array.from({ length: 3 }, () => begin(t, scene, slow))
  await until('two uploads arrive', () => arriving(scene) === 2)
  const own = await payerOf(scene, keys)
  t.match(await own.upload('more', 'more'), { status: 503, json: { message: /too many uploads/ } })
  t.equal((await (await payerOf(scene)).upload('other', 'other')).status, 200)
  for (const socket of sockets) socket.destroy()
  await until('they have ended', () => arriving(scene) === 0)
  t.equal((await own.upload('more', 'more')).status, 200, 'a slot is free again')
})

t.test('neither does an address, whatever wallets it has', async (t) => {
  const scene = await startPaymentScene(t, { limits: { concurrentUploads: 4, uploadsPerAddress: 2 } })
  const from = (address: string) => ({ 'X-Forwarded-For': address })
  for (let n = 0; n < 3; n++) begin(t, scene, { ...(await tokenOf(scene, newKeys())), ...from('192.0.2.1') })
  await until('two uploads arrive', () => arriving(scene) === 2)
  begin(t, scene, { ...(await tokenOf(scene, newKeys())), ...from('192.0.2.2') })
  await until('one of another address, too', () => arriving(scene) === 3)
  t.equal((await (await payerOf(scene)).upload('own', 'own')).status, 200, 'this machine is not bounded')
})

t.test('an upload that is too slow is ended', async (t) => {
  const limits = { uploadPace: { graceMs: 0, bytesPerSecond: 10 ** 12 } }
  const scene = await startPaymentScene(t, { limits })
  t.match(await (await payerOf(scene)).upload('slow', 'slow'), { status: 408, json: { message: /more slowly than/ } })
  await until('nothing is left', () => arriving(scene) === 0)
})

t.test('a form that never ends is ended', async (t) => {
  const file = '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
  const send = async (beginning: string): Promise<MultipartForm<number>> => {
    const form = uploadForm('multipart/form-data; boundary=x', 8 * MIB, async (content) => {
      let bytes = 0
      for await (const chunk of content) bytes += chunk.length
      return bytes
    })
    const chunks = [beginning, ...Array<string>(64).fill('a'.repeat(65_536))]
    for (const chunk of chunks) if (!form.write(Buffer.from(chunk))) await form.ready()
    return form
  }
  const endless = {
    'before its parts': 'a',
    'in a text': '--x\r\nContent-Disposition: form-data; name="duration"\r\n\r\n',
    'after its end': `${file}a\r\n--x--\r\n`,
  }
  for (const [place, beginning] of Object.entries(endless))
    await t.rejects(send(beginning), { status: 413, message: /besides its file/ }, place)
  await t.rejects(send(`${file}a\r\n${file}`), { status: 400, message: /one part `file`/ }, 'in a second file')
  const form = await send(file)
  form.write(Buffer.from('\r\n--x--\r\n'))
  t.match(await form.finish(), { files: [{ name: 'f', taken: 4 * MIB }] }, 'the bytes of a file do not count')
})

t.test('CARs are packed and read in one thread of their own', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const files = Array.from({ length: 500 }, (_, n) => [String(n).padStart(5, '0'), `content ${n}`])
  const { car, cid } = await directoryCar(t, Object.fromEntries(files))
  const threads: Worker[] = []
  const started = (thread: Worker) => threads.push(thread)
  process.on('worker', started)
  t.teardown(() => process.off('worker', started))
  const uploaded = await Promise.all([1, 2, 3].map(() => payer.upload('d.car', car, CAR_TYPE)))
  for (const { status, json } of uploaded) {
    t.equal(status, 200)
    t.equal(CID.parse(json.data.payload_cid).toV1().toString(), cid)
  }
  const url = `${scene.payment.url}/ipfs/${uploaded[0]?.json.data.payload_cid}?format=car`
  const read = await Promise.all([1, 2, 3].map(async () => Buffer.from(await (await fetch(url)).arrayBuffer())))
  for (const one of read) t.ok(one.equals(read[0] as Buffer))
  t.equal(threads.length, 1)

  await threads[0]?.terminate()
  t.equal((await fetch(url)).status, 200, 'a thread that died is replaced')
  t.equal(threads.length, 2)
})

t.test('one machine gets a bounded number of CARs at a time', async (t) => {
  const scene = await startPaymentScene(t)
  const payer = await payerOf(scene)
  const { json } = await payer.upload('large', new Uint8Array(randomBytes(16 * 1024 * 1024)))
  const url = `${scene.payment.url}/ipfs/${json.data.payload_cid}?format=car`
  const ask = (forwarded: string) =>
    new Promise<number>((resolve, reject) => {
      const asked = get(url, { agent: false, headers: { 'x-forwarded-for': forwarded } }, (answer) => {
        t.teardown(() => answer.destroy())
        resolve(answer.statusCode ?? 0)
      })
      asked.on('error', reject)
    })
  for (let n = 0; n < 16; n++) t.equal(await ask('192.0.2.1'), 200)
  t.equal(await ask('192.0.2.1'), 503)
  t.equal(await ask('192.0.2.2'), 200, 'another machine')
})
