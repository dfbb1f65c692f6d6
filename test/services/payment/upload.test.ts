import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/waiting.js'
import { onPostgres } from '../engine.js'
import { payerOf } from './payer.js'
import {
  fileOfContent,
  type Keys,
  keptContents,
  newKeys,
  type PaymentScene,
  startPaymentScene,
} from './payment-client.js'

const UPLOAD = '/api/v1/storage/ipfs/upload'
const HELLO = { content: 'hello world', cid: 'Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD' }

type Parts = Readonly<Record<string, string | Uint8Array<ArrayBuffer> | undefined>>

/** A form of an upload; a part that is undefined is left out. */
function formOf(wallet: string | undefined, parts: Parts = {}): FormData {
  const form = new FormData()
  const all: Parts = { duration: '525', file_type: '0', wallet_address: wallet, file: HELLO.content, ...parts }
  for (const [name, value] of Object.entries(all)) {
    if (value === undefined) continue
    if (name === 'file') form.append(name, new Blob([value]), 'hello.txt')
    else form.append(name, String(value))
  }
  return form
}

async function signedIn(scene: PaymentScene): Promise<{ keys: Keys; token: string }> {
  const keys = newKeys()
  return { keys, token: await scene.signIn(keys) }
}

const names = (scene: PaymentScene, folder: string): string[] => readdirSync(join(scene.folder, folder))

t.test('an upload is a content of IPFS', async (t) => {
  const scene = await startPaymentScene(t)
  const { keys, token } = await signedIn(scene)
  const first = await scene.call('POST', UPLOAD, { body: formOf(keys.address), token })
  t.equal(first.status, 200)
  const { data } = first.json
  t.match(data, { source_file_upload_id: 1, payload_cid: HELLO.cid, file_size: 11, status: 'Pending' })
  t.equal(data.ipfs_url, `${scene.payment.url}/ipfs/${HELLO.cid}`)
  t.match(data.w_cid, new RegExp(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}${HELLO.cid}$`))
  t.equal(await (await fetch(data.ipfs_url)).text(), HELLO.content)
  const again = await scene.call('POST', UPLOAD, { body: formOf(keys.address), token })
  t.match(again.json.data, { source_file_upload_id: 2, payload_cid: HELLO.cid })
  t.not(again.json.data.w_cid, data.w_cid)
  t.same(keptContents(scene), [HELLO.cid], 'the same content is stored once')
  t.same(names(scene, 'staging'), [])
})

t.test('a wallet uploads for itself', async (t) => {
  const scene = await startPaymentScene(t)
  const { keys, token } = await signedIn(scene)
  const stranger = await signedIn(scene)
  t.equal((await scene.call('POST', UPLOAD, { body: formOf(undefined), token })).status, 200, 'the token names it')
  const refused = await scene.call('POST', UPLOAD, { body: formOf(keys.address), token: stranger.token })
  t.match(refused, { status: 403, json: { status: 'error' } })
  t.equal((await scene.call('POST', UPLOAD, { body: formOf(keys.address) })).status, 401)
  scene.clock.ahead += 86_401
  t.equal((await scene.call('POST', UPLOAD, { body: formOf(keys.address), token })).status, 401, 'after a day')
})

t.test('bad uploads store nothing', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open', limits: { maxFileBytes: 1000 } })
  const wallet = newKeys().address
  const failures: readonly [number, number, FormData | string][] = [
    [400, 10004, 'x'],
    [400, 10001, formOf(wallet, { file: undefined })],
    [400, 10001, formOf(undefined)],
    [400, 10001, formOf(wallet, { duration: undefined })],
    [400, 10002, formOf(wallet, { duration: 'long' })],
    [400, 10003, formOf(wallet, { duration: '179' })],
    [400, 10003, formOf(wallet, { duration: '541' })],
    [400, 10003, formOf(wallet, { file_type: '2' })],
    [413, 413, formOf(wallet, { file: 'x'.repeat(1001) })],
  ]
  for (const [status, code, body] of failures)
    t.match(await scene.call('POST', UPLOAD, { body }), { status, json: { status: 'error', code } })
  const headers = { 'content-type': 'multipart/form-data; boundary=x' }
  t.match(await scene.call('POST', UPLOAD, { body: '--x\r\nContent-Disposition: form', headers }), { status: 400 })
  t.same(names(scene, 'contents'), [])
  t.same(names(scene, 'staging'), [])
  const most = await scene.call('POST', UPLOAD, {
    body: formOf(wallet, { file: 'x'.repeat(1000), file_type: undefined }),
  })
  t.equal(most.status, 200, 'a file may be as large as the limit')
})

t.test('a connection that is cut leaves nothing', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const { port } = new URL(scene.payment.url)
  const socket = connect(Number(port), '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(
    `POST ${UPLOAD} HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 9999\r\n\r\n`,
  )
  socket.write('--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nbytes')
  await until('the upload has begun', () => names(scene, 'staging').length === 1)
  socket.destroy()
  await until('the upload has ended', () => names(scene, 'staging').length === 0)
  t.same(names(scene, 'contents'), [])
})

t.test('a repeated upload has the status that it has by now', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'signedIn' })
  const payer = await payerOf(scene)
  const token = await scene.signIn(payer.keys)
  const upload = async () => {
    const headers = { 'idempotency-key': 'one' }
    const { json } = await scene.call('POST', UPLOAD, { body: formOf(payer.keys.address), token, headers })
    return json.data
  }
  const first = await upload()
  t.equal(first.status, 'Pending')
  t.same(await upload(), first)
  t.equal((await payer.order(first.w_cid, 500_000n)).status, 200)
  t.same(await upload(), { ...first, status: 'Processing' }, 'a client that paid does not pay again')
})

t.test('a restart keeps contents, and removes what has no name', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const { json } = await scene.call('POST', UPLOAD, { body: formOf(newKeys().address) })
  await scene.payment.stop()
  writeFileSync(join(scene.folder, 'contents', 'QmNone.car'), 'x')
  writeFileSync(join(scene.folder, 'staging', 'rest'), 'x')
  const again = await scene.restart()
  // Another process may be about to name them.
  t.same(new Set(keptContents(again)), new Set(onPostgres ? [HELLO.cid, 'QmNone'] : [HELLO.cid]))
  t.same(names(again, 'staging'), onPostgres ? ['rest'] : [])
  t.equal(await (await fetch(`${again.payment.url}/ipfs/${json.data.payload_cid}`)).text(), HELLO.content)
})

t.test('the gateway of contents sends no damaged block', async (t) => {
  const scene = await startPaymentScene(t, { mode: 'open' })
  const content = Buffer.alloc(600_000, 'some content ')
  content.writeUInt32BE(1, 300_000)
  const body = formOf(newKeys().address, { file: new Uint8Array(content) })
  const { payload_cid: cid, ipfs_url: url } = (await scene.call('POST', UPLOAD, { body })).json.data
  const file = fileOfContent(scene, cid)
  const car = readFileSync(file)
  car[car.length - 1] = 255 - (car.at(-1) ?? 0)
  writeFileSync(file, car)
  await t.rejects((await fetch(url)).arrayBuffer(), 'an answer that has begun is cut')
  rmSync(file)
  writeFileSync(file, Buffer.alloc(700_000))
  t.equal((await fetch(url)).status, 404)
})

t.test('a form with two files is refused, one with a file of another name is not', async (t) => {
  const scene = await startPaymentScene(t)
  const { keys, token } = await signedIn(scene)
  const twice = formOf(keys.address)
  twice.append('file', new Blob(['second']), 'second.txt')
  const refused = await scene.call('POST', UPLOAD, { body: twice, token })
  t.match(refused, { status: 400, json: { code: 10003, message: /one part `file`/ } })
  const { json } = await scene.call('GET', '/api/v1/storage/tasks/deals', { token })
  t.equal(json.data.total_record_count, 0, 'nothing is uploaded')
  const beside = formOf(keys.address)
  beside.append('fileName', new Blob(['hello']), 'hello.txt')
  t.equal((await scene.call('POST', UPLOAD, { body: beside, token })).status, 200)
})
