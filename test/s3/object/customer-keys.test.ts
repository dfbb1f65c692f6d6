import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t from 'tap'
import { customerKey } from '../../../src/s3/object/encryption.js'
import { bytes, MiB, md5 } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { isInstalled, runAny } from '../../support/programs/run.js'
import { bodyOf } from '../../support/programs/sdk.js'
import { runCli } from '../../support/server/cli.js'
import { startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'
import { send } from '../../support/sign/send.js'

const CHUNK = 64 * 1024
const SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK + 777]
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

/** HEAD has no code, and 304 no name. */
function status(httpStatusCode: number) {
  return { name: /./, $metadata: { httpStatusCode } }
}

for (const mode of modes) {
  t.test(`${mode}: keys of clients`, async (t) => {
    const server = await startInProcess(t, mode, { accessLog: true })
    const { s3 } = server
    const user = new GatewayUser(server.gateway)
    await user.login()
    const Bucket = 'customers'
    await s3.createBucket({ Bucket })

    for (const size of SIZES) {
      const content = bytes(`size ${size}`, size)
      const at = { Bucket, Key: `of ${size}` }
      const put = await s3.putObject({ ...at, Body: content, Metadata: { a: 'b' }, ...OWN })
      t.match(put, { SSECustomerAlgorithm: 'AES256', SSECustomerKeyMD5: OWN.SSECustomerKeyMD5 })
      t.notOk(put.ServerSideEncryption)
      t.match(put.ETag, /^"[0-9a-f]{32}-0"$/, 'the ETag tells nothing of the content')
      const head = await s3.headObject({ ...at, ...OWN })
      t.match(head, { ContentLength: size, ETag: put.ETag, SSECustomerAlgorithm: 'AES256', Metadata: { a: 'b' } })
      const got = await s3.getObject({ ...at, ...OWN })
      t.equal(got.ETag, put.ETag)
      t.equal(got.SSECustomerKeyMD5, OWN.SSECustomerKeyMD5)
      t.ok(Buffer.from((await got.Body?.transformToByteArray()) ?? []).equals(content), `${size} bytes come back`)
      const missing = { name: 'InvalidRequest', $metadata: { httpStatusCode: 400 } }
      await t.rejects(s3.getObject(at), missing, 'no key')
      await t.rejects(s3.headObject(at), status(400))
      await t.rejects(s3.getObject({ ...at, ...OTHER }), { name: 'AccessDenied' }, 'another key')
      await t.rejects(s3.headObject({ ...at, ...OTHER }), status(403))
    }

    t.test('a key that differs in a bit is another one', async (t) => {
      const at = { Bucket, Key: `of ${CHUNK}` }
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
        await t.rejects(s3.getObject({ ...at, ...ofKey(wrong) }), { name: 'AccessDenied' }, `byte ${byte}, bit ${bit}`)
      }
    })

    t.test('ranges', async (t) => {
      const size = SIZES.at(-1) ?? 0
      const content = bytes(`size ${size}`, size)
      const at = { Bucket, Key: `of ${size}` }
      for (const first of [0, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK, size - 1])
        for (const last of [first, first + 1, 2 * CHUNK, 2 * CHUNK + 1, size - 1].filter(
          (end) => end >= first && end < size,
        )) {
          const Range = `bytes=${first}-${last}`
          t.ok((await bodyOf(s3, { ...at, ...OWN, Range })).equals(content.subarray(first, last + 1)), Range)
          await t.rejects(s3.getObject({ ...at, Range }), { name: 'InvalidRequest' }, 'never from what was read before')
          await t.rejects(s3.getObject({ ...at, ...OTHER, Range }), { name: 'AccessDenied' })
        }
      await t.rejects(s3.getObject({ ...at, ...OWN, Range: `bytes=${size}-` }), { name: 'InvalidRange' })
      const unchanged = { ...at, IfNoneMatch: (await s3.headObject({ ...at, ...OWN })).ETag }
      await t.rejects(s3.getObject({ ...unchanged, ...OWN }), status(304))
      await t.rejects(s3.getObject(unchanged), { name: 'InvalidRequest' })
      await t.rejects(s3.getObject({ ...unchanged, ...OTHER }), { name: 'AccessDenied' })
    })

    t.test('an object that was cut at the gateway', async (t) => {
      const at = { Bucket, Key: 'cut' }
      await s3.putObject({ ...at, Body: 'content', ...OWN })
      const { body, headers } = await user.get(Bucket, 'cut')
      const mark = Object.fromEntries([...headers].filter(([name]) => name.includes('-meta-dealgate-encrypted')))
      for (const length of [0, 10, body.length - 24]) {
        await user.put(Bucket, 'cut', body.subarray(0, length), mark)
        await t.rejects(s3.headObject({ ...at, ...OWN }), status(500), `HEAD of ${length} bytes`)
        await t.rejects(s3.getObject({ ...at, ...OWN }), { name: 'InternalError' })
      }
    })

    t.test('attributes and listings', async (t) => {
      const at = { Bucket, Key: `of ${CHUNK}` }
      const ObjectAttributes = ['ObjectSize', 'ETag'] as const
      const { ETag = '' } = await s3.headObject({ ...at, ...OWN })
      t.match(await s3.getObjectAttributes({ ...at, ...OWN, ObjectAttributes: [...ObjectAttributes] }), {
        ObjectSize: CHUNK,
        ETag: ETag.slice(1, -1),
      })
      await t.rejects(s3.getObjectAttributes({ ...at, ObjectAttributes: [...ObjectAttributes] }), {
        name: 'InvalidRequest',
      })
      await t.rejects(s3.getObjectAttributes({ ...at, ...OTHER, ObjectAttributes: [...ObjectAttributes] }), {
        name: 'AccessDenied',
      })
      const { Contents = [] } = await s3.listObjectsV2({ Bucket })
      t.equal(Contents.find(({ Key }) => Key === at.Key)?.ETag, ETag)
      t.equal(Contents.find(({ Key }) => Key === at.Key)?.Size, CHUNK)
    })

    t.test('what a request must say of its key', async (t) => {
      const path = `/customers/${encodeURIComponent(`of ${CHUNK}`)}`
      const caller = { endpoint: server.endpoint, accessKey: 'test-key', secretKey: 'test-secret', region: 'us-east-1' }
      const good: Record<string, string> = {
        [`${PREFIX}-algorithm`]: 'AES256',
        [`${PREFIX}-key`]: OWN.SSECustomerKey,
        [`${PREFIX}-key-md5`]: OWN.SSECustomerKeyMD5,
      }
      const without = (name: string) =>
        Object.fromEntries(Object.entries(good).filter(([each]) => each !== `${PREFIX}-${name}`))
      const cases: [string, Record<string, string>, string][] = [
        ['no algorithm', without('algorithm'), 'InvalidArgument'],
        ['no key', without('key'), 'InvalidArgument'],
        ['no MD5', without('key-md5'), 'InvalidArgument'],
        ['another algorithm', { ...good, [`${PREFIX}-algorithm`]: 'AES192' }, 'InvalidEncryptionAlgorithmError'],
        ['a wrong MD5', { ...good, [`${PREFIX}-key-md5`]: OTHER.SSECustomerKeyMD5 }, 'InvalidArgument'],
        ['a short key', { ...good, [`${PREFIX}-key`]: key.subarray(1).toString('base64') }, 'InvalidArgument'],
        ['no base64', { ...good, [`${PREFIX}-key`]: `${OWN.SSECustomerKey}!` }, 'InvalidArgument'],
        ['AES256 on a read', { 'x-amz-server-side-encryption': 'AES256' }, 'InvalidArgument'],
      ]
      for (const [name, headers, code] of cases) {
        const { status, body } = await send(caller, { method: 'GET', target: path, headers })
        t.equal(status, 400, name)
        t.match(body.toString(), `<Code>${code}</Code>`)
        t.notMatch(body.toString(), OWN.SSECustomerKey, 'no answer has the key')
      }
      const both = { ...good, 'x-amz-server-side-encryption': 'AES256' }
      const put = await send(caller, {
        method: 'PUT',
        target: '/customers/both',
        headers: both,
        body: Buffer.from('x'),
      })
      t.match(put.body.toString(), '<Code>InvalidArgument</Code>')
      await s3.putObject({ Bucket, Key: 'plain', Body: 'plain' })
      await t.rejects(
        s3.getObject({ Bucket, Key: 'plain', ...OWN }),
        { name: 'InvalidRequest' },
        'an object without one',
      )
      await t.rejects(s3.headObject({ Bucket, Key: 'plain', ...OWN }), status(400))
      await s3.putObject({ Bucket, Key: 'of the server', Body: 'x', ServerSideEncryption: 'AES256' })
      await t.rejects(s3.getObject({ Bucket, Key: 'of the server', ...OWN }), { name: 'InvalidRequest' })
    })

    t.test('presigned URLs', async (t) => {
      const headers = {
        [`${PREFIX}-algorithm`]: 'AES256',
        [`${PREFIX}-key`]: OWN.SSECustomerKey,
        [`${PREFIX}-key-md5`]: OWN.SSECustomerKeyMD5,
      }
      const at = { Bucket, Key: 'presigned', ...OWN }
      const put = await getSignedUrl(s3, new PutObjectCommand(at))
      t.equal((await fetch(put, { method: 'PUT', headers, body: 'by URL' })).status, 200)
      const get = await getSignedUrl(s3, new GetObjectCommand(at))
      t.equal(await (await fetch(get, { headers })).text(), 'by URL')
      t.equal((await fetch(get)).status, 403, 'the headers are signed')
      const inQuery = await getSignedUrl(s3, new GetObjectCommand(at), {
        hoistableHeaders: new Set(Object.keys(headers)),
      })
      t.match(inQuery, encodeURIComponent(OWN.SSECustomerKey))
      t.equal(await (await fetch(inQuery)).text(), 'by URL', 'a key in the query')
    })

    t.test('a form', async (t) => {
      const fields = { [`${PREFIX}-algorithm`]: 'AES256', [`${PREFIX}-key`]: OWN.SSECustomerKey }
      const all = { ...fields, [`${PREFIX}-key-md5`]: OWN.SSECustomerKeyMD5 }
      const { url, fields: signed } = await createPresignedPost(s3, { Bucket, Key: 'by form', Fields: all })
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
      const size = CHUNK + 1
      const content = bytes(`size ${size}`, size)
      const CopySource = `customers/${encodeURIComponent(`of ${size}`)}`
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
      const parts = [bytes('part 1', 5 * MiB + 1), bytes('part 2', 5 * MiB + CHUNK), bytes(`size ${CHUNK}`, CHUNK)]
      const created = await s3.createMultipartUpload({ ...at, ...OWN })
      t.equal(created.SSECustomerKeyMD5, OWN.SSECustomerKeyMD5)
      const { UploadId = '' } = created
      const first = { ...at, UploadId, PartNumber: 1, Body: parts[0] }
      await t.rejects(s3.uploadPart(first), { name: 'InvalidRequest', message: /initiate requested encryption/ })
      await t.rejects(s3.uploadPart({ ...first, ...OTHER }), { name: 'InvalidRequest', message: /did not match/ })
      const sent = []
      for (const [i, Body] of parts.slice(0, 2).entries()) {
        const part = await s3.uploadPart({ ...at, UploadId, PartNumber: i + 1, Body, ...OWN })
        t.equal(part.SSECustomerKeyMD5, OWN.SSECustomerKeyMD5)
        t.not(part.ETag, `"${md5(Body)}"`, 'the ETag of a part tells nothing of its content')
        const again = await s3.uploadPart({ ...at, UploadId, PartNumber: i + 1, Body, ...OWN })
        t.equal(again.ETag, part.ETag, 'and is the same when a client repeats it')
        sent.push({ PartNumber: i + 1, ETag: part.ETag })
      }
      const CopySource = `customers/${encodeURIComponent(`of ${CHUNK}`)}`
      const copied = { ...at, UploadId, PartNumber: 3, CopySource }
      t.equal((await s3.listParts({ ...at, UploadId, ...OWN })).Parts?.length, 2)
      await t.rejects(s3.listParts({ ...at, UploadId, ...OTHER }), { name: 'InvalidRequest' })
      await t.rejects(s3.uploadPartCopy({ ...copied, ...OWN }), { name: 'InvalidRequest' })
      await t.rejects(s3.uploadPartCopy({ ...copied, ...ofSource(key) }), { name: 'InvalidRequest' })
      const third = await s3.uploadPartCopy({ ...copied, ...OWN, ...ofSource(key) })
      t.equal(third.SSECustomerKeyMD5, OWN.SSECustomerKeyMD5)
      sent.push({ PartNumber: 3, ETag: third.CopyPartResult?.ETag })
      await server.restart()
      const MultipartUpload = { Parts: sent }
      await t.rejects(s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload, ...OTHER }), {
        name: 'InvalidRequest',
      })
      for (const more of [{}, OWN]) {
        const done = await s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload, ...more })
        t.match(done.ETag, /-3"$/)
      }
      const whole = Buffer.concat(parts)
      t.ok((await bodyOf(s3, { ...at, ...OWN })).equals(whole))
      t.ok((await bodyOf(s3, { ...at, ...OWN, PartNumber: 2 })).equals(parts[1] as Buffer))
      await t.rejects(s3.getObject({ ...at, PartNumber: 2 }), { name: 'InvalidRequest' })
      await t.rejects(s3.getObject({ ...at, ...OTHER }), { name: 'AccessDenied' })
      const { UploadId: plain } = await s3.createMultipartUpload({ Bucket, Key: 'plain parts' })
      await t.rejects(
        s3.uploadPart({ Bucket, Key: 'plain parts', UploadId: plain, PartNumber: 1, Body: 'x', ...OWN }),
        {
          name: 'InvalidRequest',
        },
      )
    })

    t.test('damage is an error, and never a wrong byte', async (t) => {
      const content = bytes('damaged', 3 * CHUNK)
      const at = { Bucket, Key: 'damaged' }
      await s3.putObject({ ...at, Body: content, ...OWN })
      const { body, headers } = await user.get(Bucket, 'damaged')
      const mark = [...headers].filter(([name]) => name.includes('-meta-dealgate-encrypted'))
      const put = (bad: Buffer, name = 'damaged') => user.put(Bucket, name, bad, Object.fromEntries(mark))
      const header = Number(/\d+$/.exec(mark[0]?.[1] ?? '')?.[0])
      const chunk = (i: number) => body.subarray(header + 16 + i * (CHUNK + 16), header + 16 + (i + 1) * (CHUNK + 16))
      for (const place of [25, header - 3, header + 3, header + 16, body.length - 1]) {
        const bad = Buffer.from(body)
        bad[place] = (bad[place] ?? 0) ^ 1
        await put(bad)
        await t.rejects(bodyOf(s3, { ...at, ...OWN }), `byte ${place}`)
      }
      const head = body.subarray(0, header + 16)
      await put(Buffer.concat([head, chunk(1), chunk(0), chunk(2)]))
      await t.rejects(bodyOf(s3, { ...at, ...OWN }), 'two chunks exchanged')
      await put(Buffer.concat([head, chunk(0), chunk(1)]))
      await t.rejects(bodyOf(s3, { ...at, ...OWN }), 'cut')
      await put(body, 'elsewhere')
      await t.rejects(s3.getObject({ ...at, ...OWN, Key: 'elsewhere' }), { name: 'AccessDenied' })
    })

    t.test('the program age opens it with the key', { skip: isInstalled('age') ? false : 'no age' }, async (t) => {
      const folder = temporaryFolder(t)
      await writeFile(join(folder, 'object.age'), (await user.get(Bucket, encodeURIComponent(`of ${CHUNK}`))).body)
      await writeFile(join(folder, 'key.txt'), (await runCli(['encryption', 'identity', OWN.SSECustomerKey])).stdout)
      const { code, stdout } = await runAny('age', ['-d', '-i', join(folder, 'key.txt'), join(folder, 'object.age')])
      t.equal(code, 0)
      t.ok(stdout.equals(bytes(`size ${CHUNK}`, CHUNK)))
    })

    t.test('the state is lost, and the key still opens everything', async (t) => {
      await server.restart({ data: temporaryFolder(t) })
      for (const size of SIZES) {
        const at = { Bucket, Key: `of ${size}` }
        t.equal((await s3.headObject({ ...at, ...OWN })).ContentLength, size)
        t.ok((await bodyOf(s3, { ...at, ...OWN })).equals(bytes(`size ${size}`, size)))
        await t.rejects(s3.getObject(at), { name: 'InvalidRequest' })
      }
    })

    t.test('no line of the log has the key', async (t) => {
      const lines = JSON.stringify(server.lines)
      t.match(lines, '"operation":"CompleteMultipartUpload"')
      for (const text of [OWN.SSECustomerKey, encodeURIComponent(OWN.SSECustomerKey), OTHER.SSECustomerKey])
        t.notOk(lines.includes(text))
    })
  })
}

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
  const headers = {
    [`${PREFIX}-algorithm`]: 'AES256',
    [`${PREFIX}-key`]: OWN.SSECustomerKey,
    [`${PREFIX}-key-md5`]: OWN.SSECustomerKeyMD5,
  }
  const ask = (
    secure: boolean,
    remoteAddress: string,
    customerKeysOverHttp = false,
    more: Record<string, string> = {},
  ) => {
    const { host = '127.0.0.1:9000', ...others } = more
    const rawHeaders = Object.entries(others).flat()
    return customerKey({ headers, rawHeaders, host, secure, remoteAddress, secrets: [] }, {
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

t.test('a range asks the gateway once, and once more for the beginning of an object that is not known', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3, gateway } = server
  const at = { Bucket: 'customers', Key: 'ranges' }
  const content = bytes('ranges', 6 * CHUNK)
  await s3.createBucket({ Bucket: at.Bucket })
  await s3.putObject({ ...at, Body: content, ...OWN })
  const between = await Between.start(t, gateway)
  await server.restart({ gateway: { url: between.url, account: gateway.account } })
  const asked = async (work: () => Promise<unknown>) => {
    const before = between.requests.length
    await work()
    return between.requests.slice(before).filter(({ path }) => path.includes('/download/')).length
  }
  const read = (first: number, last: number) => async () => {
    const body = await bodyOf(s3, { ...at, ...OWN, Range: `bytes=${first}-${last}` })
    t.ok(body.equals(content.subarray(first, last + 1)))
  }
  t.equal(await asked(read(2 * CHUNK - 1, 2 * CHUNK)), 2)
  t.equal(await asked(read(3 * CHUNK, 4 * CHUNK)), 1)
  t.equal(await asked(read(5, 10)), 1)
  t.equal(
    await asked(() => t.rejects(s3.getObject({ ...at, ...OTHER, Range: 'bytes=5-10' }), { name: 'AccessDenied' })),
    1,
  )
  t.equal(await asked(() => t.rejects(s3.getObject({ ...at, Range: 'bytes=5-10' }), { name: 'InvalidRequest' })), 1)
  t.equal(await asked(read(5 * CHUNK, 6 * CHUNK - 1)), 1)
  t.equal(await asked(() => s3.headObject({ ...at, ...OWN })), 1)
  t.equal(await asked(() => t.rejects(s3.headObject({ ...at, ...OTHER }), status(403))), 1)
})
