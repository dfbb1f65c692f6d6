import t, { type Test } from 'tap'
import deal from '../../plugins/deal/index.js'
import pay from '../../plugins/pay/index.js'
import type { AnyOperation } from '../../src/api/operation.js'
import type { Proxy as S3Proxy } from '../../src/server/proxy-options.js'
import type { Endpoint } from '../suites/sign.js'
import { contentMd5 } from '../support/content/content.js'
import { Between } from '../support/gateway/between.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { startInProcess } from '../support/server/in-process.js'
import { modes } from '../support/server/modes.js'
import { exchange, headText } from '../support/sign/raw.js'
import { answerTo, open, send, sendHead, sign, targetOf, UNSIGNED_PAYLOAD } from '../support/sign/send.js'

/** docs/design.md, promise 14: nothing costly happens before the decision who may. */

const BUCKET = 'costs'

interface Scene {
  readonly owner: Endpoint
  /** Has rights to another bucket, and to none of these. */
  readonly stranger: Endpoint
  readonly between: Between
  readonly proxy: S3Proxy
}

async function start(t: Test, mode: (typeof modes)[number]): Promise<Scene> {
  const rights = [{ bucket: 'elsewhere', access: 'readwrite' as const }]
  const identities = [
    { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' },
    { accessKeyId: 'stranger-key', secretAccessKey: 'stranger-secret', rights },
  ]
  const server = await startInProcess(t, mode, { identities })
  const between = await Between.start(t, server.gateway)
  const gateway = { url: between.url, account: server.gateway.account }
  await server.restart({ gateway, paymentUrl: 'http://127.0.0.1:9', plugins: [deal(), pay({})] })
  const endpoint = { endpoint: server.endpoint, region: 'us-east-1' }
  const owner = { ...endpoint, accessKey: 'owner-key', secretKey: 'owner-secret' }
  t.equal((await send(owner, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  t.equal((await send(owner, { method: 'PUT', target: targetOf(BUCKET, 'key'), body: Buffer.of(1) })).status, 200)
  return {
    owner,
    stranger: { ...endpoint, accessKey: 'stranger-key', secretKey: 'stranger-secret' },
    between,
    proxy: server.proxy,
  }
}

/** Sends the head alone, and none of the body that it announces. The status is 100 where the body is asked for. */
async function headOf(endpoint: Endpoint, method: string, target: string, headers: Record<string, string>) {
  const { request, answer, continued } = await sendHead(endpoint, method, target, {
    ...headers,
    'content-length': '100000',
  })
  const status = continued ? 100 : (await answer).status
  request.destroy()
  return status
}

const FORM = { 'content-type': 'multipart/form-data; boundary=b' }

/** A request that this operation answers. */
function requestFor({ on, name }: AnyOperation): { target: string; headers: Record<string, string> } {
  const path =
    on.resource === 'service'
      ? (on.path ?? '/').replace(/\{[^}]*\}/g, 'one')
      : on.resource === 'bucket'
        ? `/${BUCKET}`
        : targetOf(BUCKET, 'key')
  const query = (on.query ?? []).map((one) => (one.includes('=') ? one : `${one}=1`)).join('&')
  return {
    target: query === '' ? path : `${path}?${query}`,
    headers: { ...(on.header !== undefined && { [on.header]: `/${BUCKET}/key` }), ...(name === 'PostObject' && FORM) },
  }
}

for (const mode of modes)
  t.test(mode, async (t) => {
    const scene = await start(t, mode)
    await t.test('a caller without the right is refused by the head of the request', (t) => refusedByHead(t, scene))
    await t.test('an upload of unknown length is decided before any of it is kept', (t) => unknownLength(t, scene))
    t.equal(scene.between.count('PUT', '/'), 1, 'nothing but the object of the owner was sent to the gateway')
    await t.test('DeleteObjects without a signature asks the gateway once, not for each key', (t) => deleting(t, scene))
    if (mode === 'legacy') return
    await t.test('a plain operation on an object is one call to the gateway', (t) => oneCall(t, scene))
    await t.test('documents that are nested more deeply than the stack are refused', (t) => nested(t, scene))
  })

async function refusedByHead(t: Test, { owner, stranger, between, proxy }: Scene): Promise<void> {
  const rows = proxy.operations.filter(({ operation: { on } }) => ['PUT', 'POST'].includes(on.method))
  t.ok(rows.length > 50, `${rows.length} operations may have a body`)
  for (const { operation } of rows) {
    const { name, on } = operation
    // It reads a form, of at most 64 KiB, from any client: test/src/s3/sts.
    if (name === 'SecurityTokenService') continue
    const { target, headers } = requestFor(operation)
    const known = between.requests.length
    const signed = sign(stranger, { method: on.method, target, headers, payloadHash: UNSIGNED_PAYLOAD }).headers
    const refused = await headOf(stranger, on.method, target, signed)
    // It is not said whether another's job exists; the bucket of the service is there for everyone, and its body is
    // not read.
    const expected = on.path?.startsWith('/-/jobs/') ? 404 : name.startsWith('CreateBucketOfService') ? 200 : 403
    t.equal(refused, expected, `${name}: signed, without rights`)
    // The signature of a form is in its fields.
    t.equal(await headOf(owner, on.method, target, headers), name === 'PostObject' ? 100 : 403, `${name}: anonymous`)
    t.ok(between.requests.length - known <= 4, `${name}: ${between.requests.length - known} calls to the gateway`)
  }
}

async function unknownLength(t: Test, { owner, stranger }: Scene): Promise<void> {
  const forms: Record<string, Record<string, string>> = {
    'chunked alone': { 'transfer-encoding': 'chunked', 'x-amz-content-sha256': UNSIGNED_PAYLOAD },
    'a trailer without a decoded length': {
      'transfer-encoding': 'chunked',
      'content-encoding': 'aws-chunked',
      'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      'x-amz-trailer': 'x-amz-checksum-crc32',
    },
  }
  for (const [name, form] of Object.entries(forms)) {
    const { 'x-amz-content-sha256': payloadHash = '', ...headers } = form
    const put = async (who: Endpoint | undefined, bucket: string) => {
      const target = targetOf(bucket, 'key')
      const signed = who && sign(who, { method: 'PUT', target, payloadHash, headers }).headers
      return answerBeforeTheEnd(owner, target, signed ?? headers)
    }
    t.match(await put(undefined, BUCKET), /^HTTP\/1.1 403 /, `${name}: anonymous`)
    t.match(await put(stranger, BUCKET), /^HTTP\/1.1 403 /, `${name}: without rights`)
    t.match(await put(owner, 'no-such-bucket'), /^HTTP\/1.1 404 /, `${name}: no such bucket`)
  }
}

async function deleting(t: Test, { owner, between }: Scene): Promise<void> {
  const anonymous = (keys: readonly string[]) => {
    const objects = keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')
    const body = Buffer.from(`<Delete>${objects}</Delete>`)
    const headers = { 'content-length': String(body.length), ...contentMd5(body) }
    const request = open(owner, 'POST', `/${BUCKET}?delete`, headers)
    request.end(body)
    return answerTo(request)
  }
  const many = Array.from({ length: 999 }, (_, i) => `closed/${i}`)
  let known = between.requests.length
  t.match(await anonymous(many), { status: 403, code: 'AccessDenied' })
  t.ok(between.requests.length - known <= 3, `${between.requests.length - known} calls`)

  const user = new GatewayUser(between)
  await user.login()
  await user.call('web.SetBucketPolicy', { bucketName: BUCKET, prefix: 'open/', policy: 'readwrite' })
  await user.put(BUCKET, 'open/a', Buffer.from('a'))
  known = between.requests.length
  const { status, body } = await anonymous([...many, 'open/a'])
  t.equal(status, 200)
  t.match(body.toString(), '<Deleted><Key>open/a</Key></Deleted>')
  t.equal(body.toString().split('<Code>AccessDenied</Code>').length - 1, many.length)
  t.ok(between.requests.length - known <= 12, `${between.requests.length - known} calls`)
}

async function oneCall(t: Test, { owner, between }: Scene): Promise<void> {
  const cases = [
    ['PUT', targetOf(BUCKET, 'plain')],
    ['GET', targetOf(BUCKET, 'plain')],
    ['HEAD', targetOf(BUCKET, 'plain')],
    ['GET', `/${BUCKET}?list-type=2`],
    ['DELETE', targetOf(BUCKET, 'plain')],
  ] as const
  // The first round gets tokens and the features of the gateway.
  for (const round of ['first', 'second'])
    for (const [method, target] of cases) {
      const known = between.requests.length
      const answer = await send(owner, { method, target, ...(method === 'PUT' && { body: Buffer.from(round) }) })
      t.ok(answer.status < 300, `${method} ${target}`)
      if (round === 'second') t.equal(between.requests.length - known, 1, `${method} ${target}`)
    }
}

async function nested(t: Test, { owner }: Scene): Promise<void> {
  const brackets = (count: number) => `${'['.repeat(count)}${']'.repeat(count)}`
  const cases = [
    ['POST', `/${BUCKET}/key?x-share=`, `{"Expiry": ${brackets(500_000)}}`],
    ['PUT', `/${BUCKET}?policy=`, `{"Version":"2012-10-17","Statement":${brackets(9000)}}`],
    ['POST', `/${BUCKET}/key?x-deal=`, `{"MinerId": ${brackets(300_000)}}`],
    ['POST', `/${BUCKET}?delete=`, '<:a>'.repeat(500_000)],
    ['PUT', `/${BUCKET}?tagging=`, '<:a>'.repeat(500_000)],
  ] as const
  for (const [method, target, document] of cases) {
    const answer = await send(owner, { method, target, body: Buffer.from(document) })
    t.match(answer, { status: 400, code: /^(InvalidArgument|InvalidRequest|MalformedPolicy|MalformedXML)$/ }, target)
  }
}

/** Sends a part of a body in chunks and never its end; resolves to the answer. */
async function answerBeforeTheEnd(endpoint: Endpoint, target: string, headers: Record<string, string>) {
  const head = headText('PUT', target, { host: new URL(endpoint.endpoint).host, ...headers })
  return (await exchange(endpoint, (socket) => socket.write(`${head}5\r\nhello\r\n`))).text
}
