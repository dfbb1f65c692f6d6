import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import { acceptLoss } from '../../../src/state/open-backend.js'
import { openState } from '../../../src/state/open-state.js'
import { newKeys } from '../../services/payment/payment-client.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import type { Scripted } from '../task/recorded-platform.js'
import { backUp, type TaskProxy } from '../task/scene.js'
import { link, startPayment, startPayProxy, startScripted, UPLOAD, WALLET } from './scene.js'

const DETAIL = 'GET /api/v1/storage/deal/detail/0'
const CID = 'QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX'

const W_CID = `12345678-1234-4234-8234-123456789012${CID}`

const uploaded = {
  source_file_upload_id: 5,
  payload_cid: CID,
  ipfs_url: `http://x/ipfs/${CID}`,
  file_size: 5,
  w_cid: W_CID,
}

let orders = 0

async function start(t: Test, pay: object = {}, data?: string) {
  const scene = await startScripted(t, pay, data)
  const { proxy } = scene
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/x/hello.txt', { body: 'hello' })
  const order = async (wait = 60, body: object = { DurationDays: 525 }, path = '/photos/x/hello.txt') => {
    const headers = { 'idempotency-key': `lost-${orders++}`, prefer: `wait=${wait}` }
    const answer = await proxy.send('POST', `${path}?format=json&x-pay=`, { body, headers })
    return { status: answer.status, json: JSON.parse(answer.body) }
  }
  return { ...scene, order, job: proxy.job }
}

const now = () => Math.floor(Date.now() / 1000)

const ofUs = (more: object = {}) => ({
  ...{ source_file_upload_id: 5, file_name: 'hello.txt', file_size: 5, duration: 525, upload_at: now() },
  ...more,
})

t.test('the form of an upload, byte by byte', async (t) => {
  const { on, order, posts } = await start(t)
  on(`POST ${UPLOAD}`, [200, { status: 'success', code: '200', data: { ...uploaded, source_file_upload_id: '5' } }])
  t.match(await order(), { status: 200, json: { SourceFileUploadId: 5, PayloadCid: CID, WCid: W_CID } })
  const [post] = posts()
  t.match(post, { authorization: undefined, type: /^multipart\/form-data; boundary=/ })
  const fields = [
    ...(post?.body ?? '').matchAll(/name="(\w+)"(?:; filename="([^"]*)")?[\s\S]*?\r\n\r\n([\s\S]*?)\r\n--/g),
  ]
  t.same(
    fields.map(([, name, file, text]) => [name, file, text]),
    [
      ['duration', undefined, '525'],
      ['file_type', undefined, '0'],
      ['wallet_address', undefined, WALLET],
      ['file', 'hello.txt', 'hello'],
    ],
  )
})

t.test('answers that say nothing: the upload is found in the list, and nothing is posted twice', async (t) => {
  const { on, order, posts, job, listedOncePosted, proxy } = await start(t)
  const answers: Scripted[] = [
    'lost',
    [500, { status: 'error', code: 20001, message: 'Internal error' }],
    [503, '<!doctype html>'],
    [200, '<!doctype html>'],
  ]
  on(`POST ${UPLOAD}`, ...answers)
  on(DETAIL, [200, { status: 'success', data: { source_file_upload_deal: { w_cid: W_CID, ipfs_url: 'http://x/1' } } }])
  const names = answers.map((_, i) => `${i}.txt`)
  listedOncePosted(
    ...names.flatMap((file_name, i) => [
      ofUs({ source_file_upload_id: 1, file_name, upload_at: 1_613_713_470 }),
      ofUs({ source_file_upload_id: 2, file_name, file_size: 6 }),
      ofUs({ source_file_upload_id: 3, file_name, duration: 180 }),
      ofUs({ source_file_upload_id: 4, file_name: `my-${file_name}` }),
      ofUs({ source_file_upload_id: 10 + i, file_name }),
    ]),
  )
  const ids: string[] = []
  for (const name of names) {
    await proxy.send('PUT', `/photos/${name}`, { body: 'hello' })
    const { status, json } = await order(0, { DurationDays: 525 }, `/photos/${name}`)
    t.equal(status, 202)
    ids.push(json.JobId)
    await until('it is posted', () => posts().length === ids.length)
  }
  for (const [i, id] of ids.entries()) {
    const { Result } = await job(id, 'Complete')
    t.match(Result, { SourceFileUploadId: 10 + i, PayloadCid: CID, WCid: W_CID, FileSize: 5 })
    t.match((await proxy.send('HEAD', `/photos/${i}.txt`)).headers, { 'x-amz-meta-pay-cid': CID })
  }
  t.equal(posts().length, answers.length)
})

t.test('a service that has no list of uploads takes uploads with a client token', async (t) => {
  const { on, order } = await start(t)
  on('GET /api/v1/storage/tasks/deals', [404, '<!doctype html>'])
  on(`POST ${UPLOAD}`, [200, { status: 'success', data: uploaded }])
  t.match(await order(), { status: 200, json: { SourceFileUploadId: 5 } })
})

t.test('two that may be it, and an NFT, which is in no list: the job stays unknown', async (t) => {
  const { on, order, posts, job, listedOncePosted, service, later } = await start(t, { reconcileAfterSeconds: 1 })
  on(`POST ${UPLOAD}`, 'lost')
  listedOncePosted(ofUs(), ofUs({ source_file_upload_id: 6 }))
  const jobs = [await order(0), await order(0, { DurationDays: 525, FileType: '1' })].map(({ json }) => json.JobId)
  for (const id of jobs) await job(id, 'Unknown')
  later(100)
  await until('the list is searched', () => service.requests.some(({ target }) => target.includes('/tasks/deals')))
  for (const id of jobs) t.match(await job(id, 'Unknown'), { Status: 'Unknown' })
  t.equal(posts().length, 2)
})

t.test('an upload that is never listed counts as not made, and is posted again', async (t) => {
  const { on, order, posts, job, listedOncePosted, later } = await start(t, { reconcileAfterSeconds: 60 })
  on(`POST ${UPLOAD}`, 'lost', [200, { status: 'success', data: uploaded }])
  listedOncePosted()
  const { json } = await order(0)
  await job(json.JobId, 'Unknown')
  later(61)
  t.match((await job(json.JobId, 'Complete')).Result, { SourceFileUploadId: 5 })
  t.equal(posts().length, 2)
})

t.test('refusals of the service', async (t) => {
  const { on, order, posts, proxy } = await start(t)
  const refusal = async (answer: Scripted) => {
    on(`POST ${UPLOAD}`, answer)
    return (await order()).json.Code
  }
  const message = 'no'
  t.equal(await refusal([500, { status: 'error', code: 10003, message }]), 'InvalidArgument', 'an invalid parameter')
  t.equal(await refusal([413, { status: 'error', message }]), 'EntityTooLarge')
  t.equal(await refusal([200, { status: 'error', message }]), 'InvalidArgument')
  t.equal(await refusal([401, { status: 'error', message }]), 'UpstreamAuthFailed')
  const before = posts().length
  on(
    `POST ${UPLOAD}`,
    [503, { status: 'error', code: 503, message: 'try again later' }],
    [200, { status: 'success', data: uploaded }],
  )
  t.match(await order(), { status: 200, json: { SourceFileUploadId: 5 } }, 'what is busy is tried again')
  t.equal(posts().length, before + 2)
  on('GET /stats/storage', [200, { status: 'success', data: { average_price_per_GB_per_year: ' FIL' } }])
  t.match(await proxy.ask('GET', '/-/pay/v1/price-statistics'), {
    AveragePricePerGBPerYear: { Text: ' FIL', Unit: 'FIL' },
  })
})

t.test('a cap that cannot be kept refuses', async (t) => {
  const { on, order, posts } = await start(t)
  on('GET /stats/storage', [200, { status: 'success', data: { average_price_per_GB_per_year: ' FIL' } }])
  t.match((await order()).json, { Code: 'SpendCapReached', Message: /does not tell its prices/ })
  t.equal(posts().length, 0)
})

t.test('a service without idempotency keys: an upload on no record is not made again', async (t) => {
  const { on, order, posts, listed } = await start(t)
  on(`POST ${UPLOAD}`, [200, { status: 'success', code: '200', data: uploaded }])
  // Such as an upload whose record was lost with the state store.
  listed(ofUs({ source_file_upload_id: 7 }))
  t.match(await order(), { status: 409, json: { Code: 'DuplicateRequest', Details: { SourceFileUploadId: 7 } } })
  listed(ofUs({ source_file_upload_id: 7, upload_at: now() - 9 * 86_400 }), ofUs({ file_size: 6 }))
  t.match(await order(), { status: 200, json: { SourceFileUploadId: 5 } })
  listed(ofUs())
  t.match(await order(), { status: 200 }, 'one that is on record')
  t.equal(posts().length, 2, 'the one that was refused did not arrive whole')
})

t.test('after a loss of the store, what the service lists of today counts against the cap', async (t) => {
  const data = temporaryFolder(t)
  const log = createLogger({ level: 'silent' })
  await (await openState({ data, log })).close()
  rmSync(join(data, 'state'), { recursive: true })
  t.equal(await acceptLoss({ data, log }), true)
  const { on, order, posts, listed, later } = await start(t, {}, data)
  on(`POST ${UPLOAD}`, [200, { status: 'success', code: '200', data: uploaded }])
  on('GET /api/v1/storage/tasks/deals', [500, { status: 'error', code: 20001, message: 'Internal error' }])
  const { json } = await order(0)
  t.equal(json.Status === 'Complete', false)
  t.equal(posts().length, 0, 'nothing is uploaded before the list was read')
  // Each 7.5 fil: 5 TB for a year at 0.001 fil, times 1.5.
  const large = { file_name: 'large', file_size: 5e12, duration: 365 }
  listed(
    ofUs({ source_file_upload_id: 8, ...large }),
    ofUs({ source_file_upload_id: 9, ...large }),
    ofUs({ source_file_upload_id: 7, ...large, upload_at: now() - 86_400 }),
  )
  later(10)
  t.match((await order()).json, { Code: 'SpendCapReached', Message: /15\b.* are spent/ })
  t.equal(posts().length, 0)
})

// A state store that is restored from a backup lacks the jobs of later requests. The client repeats such a request.

for (const variant of ['a', 'b'] as const) {
  t.test(`variant ${variant}: a client token uploads once, also when its job is lost`, async (t) => {
    await farFromMidnight()
    const scene = await startPayment(t, variant)
    const keys = newKeys()
    const data = temporaryFolder(t)
    const start = () => startPayProxy(t, scene, { data, pay: { wallet: keys.address } })
    const order = async (proxy: TaskProxy, target: string, token: string, body: object | string) => {
      const headers = { 'x-amz-client-token': token, prefer: 'wait=60' }
      const answer = await proxy.send('POST', target, { body, headers })
      return { status: answer.status, body: answer.body, id: JSON.parse(answer.body).SourceFileUploadId as number }
    }
    const object = '/photos/a.txt?format=json&x-pay='
    const file = (name: string) => `/-/pay/v1/uploads?duration-days=525&file-name=${name}&format=json`
    const count = async (proxy: TaskProxy) => (await proxy.ask('GET', '/-/pay/v1/uploads')).TotalRecordCount
    const first = await start()
    if (variant === 'a') await link(first, keys)
    await first.send('PUT', '/photos')
    await first.send('PUT', '/photos/a.txt', { body: 'hello' })
    await first.close()
    const restore = backUp(t, data)
    const restored = async (proxy: TaskProxy) => {
      await proxy.close()
      return restore(start, (noticing) => order(noticing, object, 'one', { DurationDays: 525 }))
    }

    const second = await start()
    const ofObject = await order(second, object, 'one', { DurationDays: 525 })
    t.match(ofObject, { status: 200, id: Number }, ofObject.body)
    const ofFile = await order(second, file('b.txt'), 'two', 'bytes')
    t.match(ofFile, { status: 200, id: Number }, ofFile.body)
    const minted = await order(second, object, 'three', { DurationDays: 525, FileType: '1' })
    t.match(minted, { status: 200, id: Number }, minted.body)
    t.equal(await count(second), 2, 'the list has those by users')

    let third = await restored(second)
    t.match(await order(third, object, 'one', { DurationDays: 525 }), { status: 200, id: ofObject.id })
    t.match(await order(third, file('b.txt'), 'two', 'bytes'), { status: 200, id: ofFile.id })
    t.match(await order(third, object, 'three', { DurationDays: 525, FileType: '1' }), { status: 200, id: minted.id })
    t.equal(await count(third), 2, 'nothing was uploaded twice')
    third = await restored(third)
    for (const [target, body] of [
      [file('b.txt'), 'other'],
      [file('c.txt'), 'bytes'],
    ] as const)
      t.match(await order(third, target, 'two', body), { status: 409, body: /IdempotencyParameterMismatch/ })
    const other = await order(third, object, 'four', { DurationDays: 525 })
    t.equal(other.status, 200, other.body)
    t.not(other.id, ofObject.id, 'another token is another upload')
    await third.send('PUT', '/photos/a.txt', { body: 'world' })
    const replaced = await order(third, object, 'one', { DurationDays: 525 })
    t.equal(replaced.status, 200, replaced.body)
    t.not(replaced.id, ofObject.id, 'another content is another upload')
  })
}
