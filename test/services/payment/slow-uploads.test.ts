import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { paced } from '../../../src/services/http/body.js'
import type { MultipartForm } from '../../../src/services/http/form.js'
import { uploadForm } from '../../../src/services/payment/uploads/upload.js'
import { until } from '../../support/waiting.js'
import { payerOf } from './payer.js'
import { type Keys, newKeys, type PaymentScene, startPaymentScene } from './payment-client.js'

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

async function tokenOf(scene: PaymentScene, keys: Keys): Promise<Record<string, string>> {
  return { Authorization: `Bearer ${await scene.signIn(keys)}` }
}

t.test('a wallet that holds all its slots does not keep others out', async (t) => {
  const scene = await startPaymentScene(t, { limits: { uploadsAtOnce: 4, uploadsPerWallet: 2 } })
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
  const scene = await startPaymentScene(t, { limits: { uploadsAtOnce: 4, uploadsPerAddress: 2 } })
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

t.test('only the time in which the client is slow counts', async (t) => {
  let now = 0
  let taken = true
  const sink = {
    write: () => taken,
    async ready() {
      now += 60_000
    },
  }
  const body = paced(sink, { graceMs: 1000, bytesPerSecond: 100 }, () => now)
  now = 1000
  t.ok(body.write(Buffer.alloc(1)), 'within the grace')
  taken = false
  t.notOk(body.write(Buffer.alloc(99)))
  await body.ready()
  taken = true
  now += 1000
  t.ok(body.write(Buffer.alloc(1)), '101 bytes in 2 seconds, without the minute of the sink')
  now += 1000
  t.notOk(body.write(Buffer.alloc(1)))
  await t.rejects(body.ready(), { message: /more slowly than/ })
})

t.test('a form that never ends is ended', async (t) => {
  const file = '--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
  const MiB = 2 ** 20
  const send = async (beginning: string): Promise<MultipartForm<number>> => {
    const form = uploadForm('multipart/form-data; boundary=x', 8 * MiB, async (content) => {
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
  for (const [place, beginning] of Object.entries(endless)) {
    await t.rejects(send(beginning), { status: 413, message: /besides its file/ }, place)
  }
  await t.rejects(send(`${file}a\r\n${file}`), { status: 400, message: /one part `file`/ }, 'in a second file')
  const form = await send(file)
  form.write(Buffer.from('\r\n--x--\r\n'))
  t.match(await form.finish(), { files: [{ name: 'f', taken: 4 * MiB }] }, 'the bytes of a file do not count')
})
