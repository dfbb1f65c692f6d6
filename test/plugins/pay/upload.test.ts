import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { queryObjects } from 'node:v8'
import t, { type Test } from 'tap'
import { ServiceClient } from '../../../common/service-client.js'
import { postFile } from '../../../plugins/pay/upload-client.js'
import { type Keys, newKeys } from '../../services/payment/payment-client.js'
import { sha256 } from '../../support/content/content.js'
import { answerTo, open, send, sign } from '../../support/sign/send.js'
import { unsignedRequest } from '../../support/sign/signed-request.js'
import { farFromMidnight, until } from '../../support/waiting.js'
import type { RecordedPlatform } from '../task/recorded-platform.js'
import { guest, owner, type TaskProxy } from '../task/scene.js'
import { link, type PayScene, startPayment, startPayProxy, startScripted, UPLOAD } from './scene.js'

/** `ipfs add` of `hello`. */
const HELLO_CID = 'QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX'

/** Runs a test with each variant of the service, and a wallet, which is linked later in variant a. */
function inEachVariant(
  name: string,
  run: (t: Test, variant: 'a' | 'b', scene: VariantScene) => Promise<void>,
  configured = true,
): void {
  t.test(name, async (t) => {
    await farFromMidnight()
    for (const variant of ['a', 'b'] as const)
      await t.test(variant, async (t) => {
        const scene = await startPayment(t, variant)
        const keys = newKeys()
        const proxy = await startPayProxy(
          t,
          scene,
          configured && variant === 'b' ? { pay: { wallet: keys.address } } : {},
        )
        await run(t, variant, { scene, keys, proxy })
      })
  })
}

interface VariantScene {
  readonly scene: PayScene
  readonly keys: Keys
  readonly proxy: TaskProxy
}

inEachVariant('an object, in each variant', async (t, variant, { scene, keys, proxy }) => {
  await scene.fund(keys)
  const { ask, refused, send } = proxy
  await send('PUT', '/photos')
  await send('PUT', '/photos/a/hello.txt', { body: 'hello' })
  const target = '/photos/a/hello.txt?x-pay='
  if (variant === 'a') {
    t.equal(await refused('POST', target, { DurationDays: 180 }), 'WalletNotLinked')
    await link(proxy, keys)
  }
  t.equal(await refused('POST', '/photos/none?x-pay=', { DurationDays: 180 }), 'NoSuchKey')
  t.equal(await refused('POST', target, {}), 'InvalidArgument')
  t.equal(await refused('POST', target, { DurationDays: 3 }), 'InvalidArgument', 'the service has bounds')
  t.equal(await refused('POST', target, { DurationDays: 180 }, guest), 'AccessDenied')
  const order = () =>
    send('POST', `${target}&format=json`, { body: { duration: 180 }, headers: { 'x-amz-client-token': 'one' } })
  const made = JSON.parse((await order()).body)
  t.match(made, {
    Bucket: 'photos',
    Key: 'a/hello.txt',
    JobId: /^j-/,
    SourceFileUploadId: Number,
    PayloadCid: HELLO_CID,
    IpfsUrl: new RegExp(`/ipfs/${HELLO_CID}$`),
    FileSize: 5,
    WCid: new RegExp(`${HELLO_CID}$`),
    DurationDays: 180,
    ...(variant === 'a' && { Status: 'Pending' }),
  })
  t.same(JSON.parse((await order()).body), made, 'a repeated token gives the same upload')
  const other = await ask('POST', target, { DurationDays: 181 })
  t.match(other, { DurationDays: 181 }, 'other terms, another upload')
  t.match(await ask('GET', '/-/pay/v1/uploads?file-name=hello.txt'), { TotalRecordCount: 2 })
  t.match(await send('HEAD', '/photos/a/hello.txt'), {
    headers: { 'x-amz-meta-pay-cid': HELLO_CID, 'x-amz-meta-pay-upload-id': String(other.SourceFileUploadId) },
  })
  t.match(await ask('GET', target), {
    Bucket: 'photos',
    Uploads: [
      { DurationDays: 181, Current: true, Status: 'Pending' },
      {
        JobId: made.JobId,
        WCid: made.WCid,
        Current: true,
        Status: 'Pending',
        Upload: { FileName: 'hello.txt', OfflineDeals: [] },
      },
    ],
  })
  const { History } = await ask('GET', '/photos/a/hello.txt?x-pay-history=')
  const failed = History.find(({ Event }: { Event: string }) => Event === 'UploadFailed')
  t.match(failed, { Code: 'InvalidArgument', JobStatus: 'Failed' })
  t.match(History.filter(({ JobId }: { JobId: string }) => JobId === failed?.JobId)[0], { Event: 'UploadRequested' })
  await scene.payFor(keys, made.WCid)
  await send('PUT', '/photos/a/hello.txt', { body: 'other' })
  t.match(await ask('GET', target), { Uploads: [{}, { Current: false, Status: 'Processing' }] })
  t.notOk('x-amz-meta-pay-cid' in (await send('HEAD', '/photos/a/hello.txt')).headers)
  t.match(await ask('GET', `/-/jobs/v1/${made.JobId}`), { Status: 'Complete', Operation: 'pay:UploadObjectToIpfs' })
})

t.test('PUT with x-amz-meta-pay-duration', async (t) => {
  const scene = await startPayment(t, 'a')
  const writer = {
    accessKeyId: 'writer',
    secretAccessKey: 'writer-secret-key',
    rights: [{ bucket: 'photos', access: 'write' as const }],
  }
  const proxy = await startPayProxy(t, scene, { proxy: { identities: [owner, writer] } })
  await link(proxy, newKeys())
  await proxy.send('PUT', '/photos')
  const headers = { 'x-amz-meta-pay-duration': '180' }
  await proxy.send('PUT', '/photos/hello.txt', { body: 'hello', headers })
  const job = (await proxy.send('HEAD', '/photos/hello.txt')).headers['x-amz-meta-pay-job']
  t.match(job, /^j-/)
  t.match((await proxy.send('HEAD', '/photos/hello.txt')).headers, {
    'x-amz-meta-pay-warning': 'The object hello.txt is not encrypted: everyone who has its CID can read it',
  })
  t.match((await proxy.send('GET', `/-/jobs/v1/${job}/log?format=json`)).body, 'hello.txt is not encrypted')
  await proxy.job(String(job), 'Complete')
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { Uploads: [{ FileName: 'hello.txt', DurationDays: 180 }] })
  t.match((await proxy.send('HEAD', '/photos/hello.txt')).headers, { 'x-amz-meta-pay-cid': HELLO_CID })

  t.equal((await proxy.send('PUT', '/photos/poor.txt', { body: 'hello', headers, keys: writer })).status, 200)
  t.notOk('x-amz-meta-pay-job' in (await proxy.send('HEAD', '/photos/poor.txt')).headers, 'a writer may not upload')
  await proxy.send('PUT', '/photos/bad.txt', { body: 'hello', headers: { 'x-amz-meta-pay-duration': 'long' } })
  t.match((await proxy.send('HEAD', '/photos/bad.txt')).headers, { 'x-amz-meta-pay-job': /must be a number of days/ })
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { TotalRecordCount: 1 })
  const sealed = { ...headers, 'x-amz-server-side-encryption': 'AES256' }
  await proxy.send('PUT', '/photos/sealed.txt', { body: 'hello', headers: sealed })
  const told = (await proxy.send('HEAD', '/photos/sealed.txt')).headers
  t.match(told, { 'x-amz-meta-pay-job': /^j-/, 'x-amz-meta-pay-warning': undefined })
  await proxy.send('PUT', '/photos/hello.txt', { body: 'again', headers })
  const again = (await proxy.send('HEAD', '/photos/hello.txt')).headers['x-amz-meta-pay-job']
  t.match(again, /^j-/, 'another object of the same key is another upload')
  t.not(again, job)
})

t.test('spending caps count uploads, deals and tasks together', async (t) => {
  await farFromMidnight()
  const scene = await startPayment(t, 'a')
  const proxy = await startPayProxy(t, scene, { pay: { maxSpendPerDay: '0.000000000000001' } })
  await link(proxy, newKeys())
  await proxy.send('PUT', '/photos')
  await proxy.send('PUT', '/photos/large', { body: 'x'.repeat(1_000_000) })
  t.equal(await proxy.refused('POST', '/photos/large?x-pay=', { DurationDays: 500 }), 'SpendCapReached')
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { TotalRecordCount: 0 })
})

const CHUNKS = 1000

t.test('a long upload keeps nothing of the bytes that have passed', async (t) => {
  const service = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  await once(service.listen(0, '127.0.0.1'), 'listening')
  const client = new ServiceClient({
    service: 'payment service',
    url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
    timeoutMs: 60_000,
  })
  t.teardown(async () => {
    await client.close()
    service.close()
  })
  // Each is more than a request buffers, so that each waits.
  const chunk = Buffer.alloc(64 * 1024)
  let kept = 0
  const answer = await postFile(client, {
    idempotencyKey: 'key',
    path: ['upload'],
    token: undefined,
    fields: {},
    name: 'file',
    size: CHUNKS * chunk.length,
    async content(sink) {
      const before = queryObjects(Promise) as number
      for (let sent = 0; sent < CHUNKS; sent++) await sink(chunk)
      kept = (queryObjects(Promise) as number) - before
    },
    beforeEnd: async () => {},
    timeoutMs: 60_000,
    signal: new AbortController().signal,
  })
  t.equal(answer.status, 200)
  t.ok(kept < CHUNKS / 10, `${kept} promises are left`)
})

const TARGET = '/-/pay/v1/uploads?duration-days=180&file-name=a%2Fhello.txt&format=json'

inEachVariant('a file, in each variant', async (t, variant, { keys, proxy }) => {
  const { ask, send } = proxy
  const post = (target = TARGET, headers: Record<string, string> = {}, body = 'hello', by = owner) =>
    send('POST', target, { body, headers: { 'content-type': 'text/plain', ...headers }, keys: by })
  if (variant === 'a') {
    t.match(await post(), { status: 403, body: /WalletNotLinked/ })
    await link(proxy, keys)
  }
  t.match(await post(TARGET, {}, 'hello', guest), { status: 403, body: /AccessDenied/ })
  t.match(await post('/-/pay/v1/uploads?file-name=x'), { status: 400, body: /duration-days/ })
  t.match(await post(TARGET.replace('180', '3')), { status: 400, body: /InvalidArgument/ }, 'the service has bounds')
  t.equal((await unsignedRequest(proxy.endpoint, { method: 'POST', path: '/-/pay/v1/uploads', body: 'x' })).status, 403)
  const token = { 'x-amz-client-token': 'one' }
  const answer = await post(TARGET, token)
  t.match(answer.headers['x-dealgate-warning'], /not encrypted by this server/)
  const made = JSON.parse(answer.body)
  t.match(made, {
    JobId: /^j-/,
    SourceFileUploadId: Number,
    PayloadCid: HELLO_CID,
    FileSize: 5,
    WCid: new RegExp(`${HELLO_CID}$`),
    DurationDays: 180,
    ...(variant === 'a' && { Status: 'Pending' }),
  })
  t.notOk('Bucket' in made)
  t.same(JSON.parse((await post(TARGET, token)).body), made, 'a repeated token gives the same upload')
  t.match(await post(TARGET, token, 'other'), { body: /IdempotencyParameterMismatch/ })
  t.match(await post(TARGET, {}, 'third'), { status: 200 })
  t.match(await post(TARGET, {}, 'third'), { status: 409, body: /DuplicateRequest/ }, 'the same content soon after')
  t.match(await post(TARGET, {}, 'other'), { status: 200 }, 'another content')
  t.match(await post(TARGET, {}, ''), { status: 200, body: /QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH/ })
  t.match(await ask('GET', '/-/pay/v1/uploads?file-name=hello.txt'), { TotalRecordCount: 4 })
  t.match(await ask('GET', `/-/jobs/v1/${made.JobId}`), { Status: 'Complete', Operation: 'pay:UploadToIpfs' })
  t.equal(await (await fetch(made.IpfsUrl)).text(), 'hello')
})

/** The text of a form, as clients of the interface send it, and its media type. */
async function formOf(fields: Readonly<Record<string, string>>, content: string | Uint8Array<ArrayBuffer>, last = {}) {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append('file', new Blob([content]), 'folder "x".bin')
  for (const [name, value] of Object.entries(last)) form.append(name, String(value))
  const response = new Response(form)
  return {
    body: await response.text(),
    headers: { 'content-type': response.headers.get('content-type') ?? '' },
  }
}

const FORM_TARGET = '/-/pay/v1/uploads?format=json'

inEachVariant(
  'a form, in each variant',
  async (t, variant, { keys, proxy }) => {
    const { ask, send } = proxy
    const fields = { duration: '525', file_type: '0', wallet_address: keys.address, storage_copy: '5' }
    const post = async (
      more = {},
      content: string | Uint8Array<ArrayBuffer> = 'hello',
      target = FORM_TARGET,
      last = {},
    ) => send('POST', target, await formOf({ ...fields, ...more }, content, last))
    if (variant === 'a') {
      t.match(await post(), { status: 403, body: /WalletNotLinked/ })
      await link(proxy, keys)
    }
    const made = JSON.parse((await post()).body)
    t.match(made, { PayloadCid: HELLO_CID, FileSize: 5, DurationDays: 525 })
    t.same(JSON.parse((await post({}, '', '/-/pay/v1/uploads?duration-days=200&format=json')).body).DurationDays, 200)
    const odd = new Uint8Array(300_000).map((_, n) => (n % 7 === 0 ? 45 : n % 5 === 0 ? 13 : 10))
    const large = JSON.parse((await post({}, odd)).body)
    t.ok(Buffer.from(await (await fetch(large.IpfsUrl)).arrayBuffer()).equals(Buffer.from(odd)))
    const { Uploads } = await ask('GET', `/-/pay/v1/uploads?ascending=true&wallet-address=${keys.address}`)
    t.match(Uploads, [{ FileName: 'folder _x_.bin', DurationDays: 525 }, {}, { FileSize: odd.length }])
    t.match(await ask('GET', `/-/jobs/v1/${made.JobId}`), { Status: 'Complete', Operation: 'pay:UploadToIpfs' })
    for (const [name, answer] of Object.entries({
      'no duration': await post({ duration: '' }),
      'a duration that is none': await post({ duration: 'x' }),
      'a type that is none': await post({ file_type: '2' }),
      'an address that is none': await post({ wallet_address: 'x' }),
      'a part behind the file': await post({}, 'x', FORM_TARGET, { duration: '1' }),
      'texts that are too long': await post({ text: 'x'.repeat(200_000) }),
      'no file': await send('POST', FORM_TARGET, {
        body: '--x\r\nContent-Disposition: form-data; name="duration"\r\n\r\n180\r\n--x--\r\n',
        headers: { 'content-type': 'multipart/form-data; boundary=x' },
      }),
      'no end': await send('POST', FORM_TARGET, {
        body: `--x\r\nContent-Disposition: form-data; name="duration"\r\n\r\n180\r\n--x\r\nContent-Disposition: form-data; name="wallet_address"\r\n\r\n${keys.address}\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nab`,
        headers: { 'content-type': 'multipart/form-data; boundary="x"' },
      }),
      'no boundary': await send('POST', FORM_TARGET, {
        body: 'x',
        headers: { 'content-type': 'multipart/form-data; x' },
      }),
    }))
      t.match(answer, { status: 400, body: /InvalidArgument|MalformedPOSTRequest|MaxPostPreDataLengthExceeded/ }, name)
    t.equal((await ask('GET', `/-/pay/v1/uploads?wallet-address=${keys.address}`)).TotalRecordCount, 3)
    t.match(await ask('GET', '/-/jobs/v1'), { Jobs: { length: 3 } }, 'nothing is left of what was refused')
  },
  false,
)

t.test('a body that is not what was signed is not uploaded, and the token stays free', async (t) => {
  await farFromMidnight()
  const scene = await startPayment(t, 'b')
  const proxy = await startPayProxy(t, scene, { pay: { wallet: newKeys().address } })
  const signed = (body: string, headers: Record<string, string> = {}, payloadHash?: string) =>
    send(serverOf(proxy), {
      method: 'POST',
      target: TARGET.replace('json', 'xml'),
      body: Buffer.from(body),
      headers: { 'x-amz-client-token': 'one', ...headers },
      ...(payloadHash !== undefined && { payloadHash }),
    })
  t.match(await signed('hello', {}, 'UNSIGNED-PAYLOAD'), { status: 403, code: 'AccessDenied' })
  t.match(await signed('hello', { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' }), { code: 'BadDigest' })
  t.match(await signed('hello', {}, '0'.repeat(64)), { code: 'XAmzContentSHA256Mismatch' })
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { TotalRecordCount: 0 })
  t.match(await proxy.ask('GET', '/-/jobs/v1'), { Jobs: [] }, 'nothing is left of a request that failed')
  t.match(await signed('hello'), { status: 200 })
})

t.test('a file that is cut leaves nothing', async (t) => {
  const scene = await startPayment(t, 'b')
  const proxy = await startPayProxy(t, scene, { pay: { wallet: newKeys().address } })
  const { headers } = sign(serverOf(proxy), { method: 'POST', target: TARGET, payloadHash: sha256('whole') })
  const request = open(serverOf(proxy), 'POST', TARGET, { ...headers, 'content-length': String(2 ** 27) })
  answerTo(request).catch(() => {})
  request.write(Buffer.alloc(2 ** 20))
  await until('the job is held', async () => (await proxy.ask('GET', '/-/jobs/v1')).Jobs.length === 1)
  request.destroy()
  await until('the job is dropped', async () => (await proxy.ask('GET', '/-/jobs/v1')).Jobs.length === 0)
  t.match(await proxy.ask('GET', '/-/pay/v1/uploads'), { TotalRecordCount: 0 })
})

function serverOf({ endpoint }: { readonly endpoint: string }) {
  return { endpoint, region: 'us-east-1', accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey }
}

async function start(t: Test, pay: object = {}) {
  const scene = await startScripted(t, pay)
  const order = (body = 'hello') => {
    const headers = { prefer: 'wait=0', 'idempotency-key': `key-${body.slice(0, 9)}` }
    return scene.proxy.send('POST', TARGET, { body, headers })
  }
  return { ...scene, order, job: scene.proxy.job }
}

/** Holds the answer to an upload back until the test ends, or it is called. */
function holdAnswer(t: Test, { waits }: Pick<RecordedPlatform, 'waits'>): () => void {
  let answer = () => {}
  waits.set(`POST ${UPLOAD}`, new Promise<void>((resolve) => (answer = resolve)))
  t.teardown(() => answer())
  return answer
}

t.test('a lost answer: the upload is found in the list, or counts as not made', async (t) => {
  const { on, order, job, later, posts, listed, listedOncePosted, succeed } = await start(t, {
    reconcileAfterSeconds: 60,
  })
  on(`POST ${UPLOAD}`, 'lost')
  const upload_at = Math.floor(Date.now() / 1000)
  listedOncePosted({ source_file_upload_id: 7, file_name: 'hello.txt', file_size: 5, duration: 180, upload_at })
  const detail = { w_cid: `12345678-1234-4234-8234-123456789012${HELLO_CID}`, ipfs_url: 'http://x/1' }
  on('GET /api/v1/storage/deal/detail/0', succeed({ source_file_upload_deal: detail }))
  const found = JSON.parse((await order()).body)
  t.match((await job(found.JobId, 'Complete')).Result, { SourceFileUploadId: 7, PayloadCid: HELLO_CID })

  listed()
  const missing = JSON.parse((await order('other')).body)
  await job(missing.JobId, 'Unknown')
  later(61)
  t.match(await job(missing.JobId, 'Failed'), { FailureReasons: [{ FailureReason: /Send it again/ }] })
  t.equal(posts().length, 2, 'nothing is posted twice')
})

t.test('refusals of the service, and a cap', async (t) => {
  const { on, order, proxy } = await start(t, { maxSpendPerDay: '0.00000000001' })
  on(`POST ${UPLOAD}`, [409, { status: 'error', message: 'no' }])
  t.match(await order(), { status: 409, body: /PaymentRefused/ })
  on(`POST ${UPLOAD}`, [503, { status: 'error', message: 'later' }])
  t.match(await order(), { status: 503, body: /UpstreamUnavailable/ }, 'the client has the file, and can send it again')
  t.match(await order('x'.repeat(1_000_000)), { body: /SpendCapReached/ })
  t.match(await proxy.ask('GET', '/-/jobs/v1'), { Jobs: [] })
})

t.test('a file that the service has in full cannot be cancelled', async (t) => {
  const { on, order, job, proxy, posts, listed, service } = await start(t)
  const answer = holdAnswer(t, service)
  on(`POST ${UPLOAD}`, 'lost')
  listed()
  const ordered = order()
  await until('the service has the file', () => posts().length > 0)
  const [{ JobId }] = (await proxy.ask('GET', '/-/jobs/v1')).Jobs
  t.match(await proxy.send('POST', `/-/jobs/v1/${JobId}/cancel`), { status: 400, body: /irrevocable/ })
  answer()
  t.match(await ordered, { status: 202 })
  await job(JobId, 'Unknown')
})

t.test('the answer to a file counts, though the client has left before it', async (t) => {
  const { on, job, proxy, posts, service, succeed } = await start(t)
  const answer = holdAnswer(t, service)
  const w_cid = `12345678-1234-4234-8234-123456789012${HELLO_CID}`
  const upload = { source_file_upload_id: 7, payload_cid: HELLO_CID, ipfs_url: 'http://x/1', file_size: 5, w_cid }
  on(`POST ${UPLOAD}`, succeed({ ...upload, status: 'Pending' }))
  const body = Buffer.from('hello')
  const { headers } = sign(serverOf(proxy), { method: 'POST', target: TARGET, payloadHash: sha256(body) })
  const request = open(serverOf(proxy), 'POST', TARGET, { ...headers, 'content-length': '5' })
  request.on('error', () => {})
  request.end(body)
  await until('the service has the file', () => posts().length > 0)
  const [{ JobId }] = (await proxy.ask('GET', '/-/jobs/v1')).Jobs
  request.destroy()
  await new Promise((resolve) => request.once('close', resolve))
  // The server sees the end of that connection before it answers later ones.
  for (let turn = 0; turn < 3; turn++) await proxy.ask('GET', '/-/jobs/v1')
  answer()
  t.match((await job(JobId, 'Complete')).Result, { SourceFileUploadId: 7 })
})
