import { createHash } from 'node:crypto'
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t from 'tap'
import { customerKey } from '../../../../src/s3/object/encryption.js'
import { bytes, MiB, md5 } from '../../../support/content/content.js'
import { bodyOf } from '../../../support/programs/sdk.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { send } from '../../../support/sign/send.js'

const CHUNK = 64 * 1024
const PREFIX = 'x-amz-server-side-encryption-customer'

function ofKey(key: Buffer) {
  const SSECustomerKey = key.toString('base64')
  const SSECustomerKeyMD5 = createHash('md5').update(key).digest('base64')
  return { SSECustomerAlgorithm: 'AES256', SSECustomerKey, SSECustomerKeyMD5 } as const
}

function ofSource(key: Buffer) {
  const { SSECustomerAlgorithm, SSECustomerKey, SSECustomerKeyMD5 } = ofKey(key)
  return {
    CopySourceSSECustomerAlgorithm: SSECustomerAlgorithm,
    CopySourceSSECustomerKey: SSECustomerKey,
    CopySourceSSECustomerKeyMD5: SSECustomerKeyMD5,
  } as const
}

const key = bytes('the key', 32)
const other = bytes('another key', 32)
const OWN = ofKey(key)
const OTHER = ofKey(other)

const HEADERS: Readonly<Record<string, string>> = {
  [`${PREFIX}-algorithm`]: 'AES256',
  [`${PREFIX}-key`]: OWN.SSECustomerKey,
  [`${PREFIX}-key-md5`]: OWN.SSECustomerKeyMD5,
}

/** HEAD has no code, and 304 no name. */
function status(httpStatusCode: number) {
  return { name: /./, $metadata: { httpStatusCode } }
}

t.test('keys of clients', async (t) => {
  const server = await startInProcess(t, 'full', { accessLog: true })
  const { s3 } = server
  const Bucket = 'customers'
  await s3.createBucket({ Bucket })
  const sealed = { Bucket, Key: 'sealed' }
  const content = bytes('sealed', CHUNK + 1)
  const { ETag = '' } = await s3.putObject({ ...sealed, Body: content, ...OWN })

  t.test('another key, or none, is refused whatever is asked', async (t) => {
    const Range = `bytes=${CHUNK - 1}-${CHUNK}`
    t.ok((await bodyOf(s3, { ...sealed, ...OWN, Range })).equals(content.subarray(CHUNK - 1)))
    await t.rejects(s3.getObject({ ...sealed, ...OWN, IfNoneMatch: ETag }), status(304))
    for (const asked of [{}, { Range }, { IfNoneMatch: ETag }]) {
      const what = JSON.stringify(asked)
      await t.rejects(
        s3.getObject({ ...sealed, ...asked }),
        { name: 'InvalidRequest', $metadata: { httpStatusCode: 400 } },
        what,
      )
      await t.rejects(s3.getObject({ ...sealed, ...asked, ...OTHER }), { name: 'AccessDenied' }, what)
    }
    await t.rejects(s3.headObject(sealed), status(400))
    await t.rejects(s3.headObject({ ...sealed, ...OTHER }), status(403))
    const attributes = { ...sealed, ObjectAttributes: ['ETag' as const] }
    await t.rejects(s3.getObjectAttributes(attributes), { name: 'InvalidRequest' })
    await t.rejects(s3.getObjectAttributes({ ...attributes, ...OTHER }), { name: 'AccessDenied' })
  })

  t.test('a key that differs in a bit is another one', async (t) => {
    // X25519 leaves out the first three of them, and two of the last byte.
    for (const [byte, bit] of [
      [0, 1],
      [0, 2],
      [0, 4],
      [0, 8],
      [16, 1],
      [31, 64],
      [31, 128],
    ] as const) {
      const wrong = Buffer.from(key)
      wrong[byte] = (wrong[byte] ?? 0) ^ bit
      await t.rejects(
        s3.getObject({ ...sealed, ...ofKey(wrong) }),
        { name: 'AccessDenied' },
        `byte ${byte}, bit ${bit}`,
      )
    }
  })

  t.test('what a request must say of its key', async (t) => {
    const caller = { endpoint: server.endpoint, accessKey: 'test-key', secretKey: 'test-secret', region: 'us-east-1' }
    const without = (name: string) =>
      Object.fromEntries(Object.entries(HEADERS).filter(([each]) => each !== `${PREFIX}-${name}`))
    const cases: [string, Record<string, string>, string][] = [
      ['no algorithm', without('algorithm'), 'InvalidArgument'],
      ['no key', without('key'), 'InvalidArgument'],
      ['no MD5', without('key-md5'), 'InvalidArgument'],
      ['another algorithm', { ...HEADERS, [`${PREFIX}-algorithm`]: 'AES192' }, 'InvalidEncryptionAlgorithmError'],
      ['a wrong MD5', { ...HEADERS, [`${PREFIX}-key-md5`]: OTHER.SSECustomerKeyMD5 }, 'InvalidArgument'],
      ['a short key', { ...HEADERS, [`${PREFIX}-key`]: key.subarray(1).toString('base64') }, 'InvalidArgument'],
      ['no base64', { ...HEADERS, [`${PREFIX}-key`]: `${OWN.SSECustomerKey}!` }, 'InvalidArgument'],
      ['AES256 on a read', { 'x-amz-server-side-encryption': 'AES256' }, 'InvalidArgument'],
    ]
    for (const [name, headers, code] of cases) {
      const { status, body } = await send(caller, { method: 'GET', target: '/customers/sealed', headers })
      t.equal(status, 400, name)
      t.match(body.toString(), `<Code>${code}</Code>`)
      t.notMatch(body.toString(), OWN.SSECustomerKey, 'no answer has the key')
    }
    const both = { ...HEADERS, 'x-amz-server-side-encryption': 'AES256' }
    const put = await send(caller, { method: 'PUT', target: '/customers/both', headers: both })
    t.match(put.body.toString(), '<Code>InvalidArgument</Code>')
    await s3.putObject({ Bucket, Key: 'plain', Body: 'plain' })
    await t.rejects(s3.getObject({ Bucket, Key: 'plain', ...OWN }), { name: 'InvalidRequest' }, 'an object without one')
    await t.rejects(s3.headObject({ Bucket, Key: 'plain', ...OWN }), status(400))
    await s3.putObject({ Bucket, Key: 'of the server', Body: 'x', ServerSideEncryption: 'AES256' })
    await t.rejects(s3.getObject({ Bucket, Key: 'of the server', ...OWN }), { name: 'InvalidRequest' })
  })

  t.test('presigned URLs', async (t) => {
    const at = { Bucket, Key: 'presigned', ...OWN }
    const put = await getSignedUrl(s3, new PutObjectCommand(at))
    t.equal((await fetch(put, { method: 'PUT', headers: HEADERS, body: 'by URL' })).status, 200)
    const get = await getSignedUrl(s3, new GetObjectCommand(at))
    t.equal(await (await fetch(get, { headers: HEADERS })).text(), 'by URL')
    t.equal((await fetch(get)).status, 403, 'the headers are signed')
    const inQuery = await getSignedUrl(s3, new GetObjectCommand(at), {
      hoistableHeaders: new Set(Object.keys(HEADERS)),
    })
    t.match(inQuery, encodeURIComponent(OWN.SSECustomerKey))
    t.equal(await (await fetch(inQuery)).text(), 'by URL', 'a key in the query')
  })

  t.test('a form', async (t) => {
    const { url, fields: signed } = await createPresignedPost(s3, { Bucket, Key: 'by form', Fields: HEADERS })
    const post = (more: Record<string, string> = {}) => {
      const form = new FormData()
      for (const [name, value] of Object.entries(signed)) form.set(name, value)
      form.set('file', new Blob(['by form']))
      return fetch(url, { method: 'POST', body: form, headers: more })
    }
    const { status, headers } = await post()
    t.same([status, headers.get(`${PREFIX}-key-md5`)], [204, OWN.SSECustomerKeyMD5])
    t.equal((await bodyOf(s3, { Bucket, Key: 'by form', ...OWN })).toString(), 'by form')
    await t.rejects(s3.getObject({ Bucket, Key: 'by form' }), { name: 'InvalidRequest' })
    t.equal((await post({ 'x-forwarded-for': '192.0.2.1' })).status, 400, 'a proxy passes it on without TLS')
  })

  t.test('copies', async (t) => {
    const CopySource = 'customers/sealed'
    const to = (Key: string) => ({ Bucket, Key, CopySource })
    await t.rejects(s3.copyObject(to('a')), { name: 'InvalidRequest' })
    await t.rejects(s3.copyObject({ ...to('a'), ...ofSource(other) }), { name: 'AccessDenied' })
    await t.rejects(s3.copyObject({ Bucket, Key: 'a', CopySource: 'customers/plain', ...ofSource(key) }), {
      name: 'InvalidRequest',
    })
    t.match(await s3.copyObject({ ...to('rekeyed'), ...ofSource(key), ...OTHER }), {
      SSECustomerKeyMD5: OTHER.SSECustomerKeyMD5,
    })
    t.ok((await bodyOf(s3, { Bucket, Key: 'rekeyed', ...OTHER })).equals(content))
    await t.rejects(s3.getObject({ Bucket, Key: 'rekeyed', ...OWN }), { name: 'AccessDenied' })
    t.match(await s3.copyObject({ ...to('of the server'), ...ofSource(key) }), { ServerSideEncryption: 'AES256' })
    t.ok((await bodyOf(s3, { Bucket, Key: 'of the server' })).equals(content), 'a copy does not lose the encryption')
    await s3.copyObject({ Bucket, Key: 'rekeyed', CopySource: 'customers/rekeyed', ...ofSource(other), ...OWN })
    t.ok((await bodyOf(s3, { Bucket, Key: 'rekeyed', ...OWN })).equals(content), 'onto itself, with a new key')
    await s3.copyObject({ Bucket, Key: 'plain', CopySource: 'customers/plain', ...OWN })
    t.equal((await bodyOf(s3, { Bucket, Key: 'plain', ...OWN })).toString(), 'plain')
  })

  t.test('multipart uploads', async (t) => {
    const at = { Bucket, Key: 'parts' }
    const { UploadId = '' } = await s3.createMultipartUpload({ ...at, ...OWN })
    const Body = bytes('part 1', 5 * MiB)
    const first = { ...at, UploadId, PartNumber: 1, Body }
    await t.rejects(s3.uploadPart(first), { name: 'InvalidRequest', message: /initiate requested encryption/ })
    await t.rejects(s3.uploadPart({ ...first, ...OTHER }), { name: 'InvalidRequest', message: /did not match/ })
    const part = await s3.uploadPart({ ...first, ...OWN })
    t.equal(part.SSECustomerKeyMD5, OWN.SSECustomerKeyMD5)
    t.not(part.ETag, `"${md5(Body)}"`, 'the ETag of a part tells nothing of its content')
    t.equal((await s3.uploadPart({ ...first, ...OWN })).ETag, part.ETag, 'and is the same when a client repeats it')
    const copied = { ...at, UploadId, PartNumber: 2, CopySource: 'customers/sealed' }
    await t.rejects(s3.uploadPartCopy({ ...copied, ...OWN }), { name: 'InvalidRequest' })
    await t.rejects(s3.uploadPartCopy({ ...copied, ...ofSource(key) }), { name: 'InvalidRequest' })
    const second = await s3.uploadPartCopy({ ...copied, ...OWN, ...ofSource(key) })
    t.equal(second.SSECustomerKeyMD5, OWN.SSECustomerKeyMD5)
    await t.rejects(s3.listParts({ ...at, UploadId, ...OTHER }), { name: 'InvalidRequest' })
    const Parts = [part.ETag, second.CopyPartResult?.ETag].map((ETag, i) => ({ PartNumber: i + 1, ETag }))
    const complete = (more: object) =>
      s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload: { Parts }, ...more })
    await t.rejects(complete(OTHER), { name: 'InvalidRequest' })
    for (const more of [{}, OWN]) t.match((await complete(more)).ETag, /-2"$/)
    t.ok((await bodyOf(s3, { ...at, ...OWN })).equals(Buffer.concat([Body, content])))
    await t.rejects(s3.getObject({ ...at, PartNumber: 2 }), { name: 'InvalidRequest' })
    const plain = { Bucket, Key: 'plain parts' }
    const begun = await s3.createMultipartUpload(plain)
    const sent = s3.uploadPart({ ...plain, UploadId: begun.UploadId, PartNumber: 1, Body: 'x', ...OWN })
    await t.rejects(sent, { name: 'InvalidRequest' })
  })

  t.test('no line of the log has the key', async (t) => {
    const lines = JSON.stringify(server.lines)
    t.match(lines, '"operation":"CompleteMultipartUpload"')
    for (const text of [OWN.SSECustomerKey, encodeURIComponent(OWN.SSECustomerKey), OTHER.SSECustomerKey])
      t.notOk(lines.includes(text))
  })
})

t.test('the buffer that a key is read into is overwritten once its request has ended', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full')
  const caller = { endpoint, accessKey: 'test-key', secretKey: 'test-secret', region: 'us-east-1' }
  await s3.createBucket({ Bucket: 'forgotten' })
  const secret = bytes('a key to forget', 32)
  const headersFor = (prefix: string) => ({
    [`${prefix}-algorithm`]: 'AES256',
    [`${prefix}-key`]: ofKey(secret).SSECustomerKey,
    [`${prefix}-key-md5`]: ofKey(secret).SSECustomerKeyMD5,
  })
  const own = headersFor(PREFIX)
  const copied = { ...own, ...headersFor('x-amz-copy-source-server-side-encryption-customer') }
  const found: Buffer[] = []
  const { from } = Buffer
  Buffer.from = ((...given: Parameters<typeof from>) => {
    const made = from(...given)
    // Node has buffers of its own, from other texts.
    if ((given[0] as unknown) === own[`${PREFIX}-key`] && made.equals(secret)) found.push(made)
    return made
  }) as typeof from
  t.teardown(() => {
    Buffer.from = from
  })
  for (const [method, target, status, headers] of [
    ['PUT', '/forgotten/a', 200, own],
    ['GET', '/forgotten/a', 200, own],
    ['HEAD', '/forgotten/a', 200, own],
    ['PUT', '/forgotten/b', 200, { ...copied, 'x-amz-copy-source': '/forgotten/a' }],
    ['GET', '/forgotten/none', 404, own],
  ] as const) {
    const body = method === 'PUT' && target.endsWith('a') ? Buffer.alloc(300_000) : undefined
    const answer = await send(caller, { method, target, headers, ...(body && { body }) })
    t.equal(answer.status, status, `${method} ${target}`)
    t.ok(found.length > 0, 'the key was read')
    t.ok(
      found.splice(0).every((buffer) => buffer.equals(Buffer.alloc(32))),
      'and is not there any more',
    )
  }
  Buffer.from = from
  t.ok((await bodyOf(s3, { Bucket: 'forgotten', Key: 'b', ...ofKey(secret) })).equals(Buffer.alloc(300_000)))
})

t.test('a key is refused without TLS, except from the machine itself', async (t) => {
  const ask = (
    secure: boolean,
    remoteAddress: string,
    customerKeysOverHttp = false,
    more: Record<string, string> = {},
  ) => {
    const { host = '127.0.0.1:9000', ...others } = more
    const rawHeaders = Object.entries(others).flat()
    return customerKey({ headers: HEADERS, rawHeaders, host, secure, remoteAddress, secrets: [] }, {
      server: { customerKeysOverHttp },
    } as never)
  }
  t.ok(ask(true, '192.0.2.1'))
  t.ok(ask(false, '127.0.0.1'))
  t.ok(ask(false, '::1'))
  t.ok(ask(false, '192.0.2.1', true))
  for (const host of ['localhost', '[::1]:9000', 'bucket.localhost:9000'])
    t.ok(ask(false, '127.0.0.1', false, { host }))
  const refused = { code: 'InvalidRequest', message: /secure connection/ }
  t.throws(() => ask(false, '192.0.2.1'), refused)
  for (const [name, value] of [
    ['host', 's3.example.com'],
    ['Via', '1.1 proxy'],
    ['x-forwarded-for', '192.0.2.1'],
  ] as const)
    t.throws(() => ask(false, '127.0.0.1', false, { [name]: value }), refused, 'a proxy on this machine')
})
