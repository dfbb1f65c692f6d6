import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { GetObjectCommand, PutObjectCommand, type S3 } from '@aws-sdk/client-s3'
import { createPresignedPost, type PresignedPostOptions } from '@aws-sdk/s3-presigned-post'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t, { type Test } from 'tap'
import { createChecksum } from '../../common/checksums/checksums.js'
import { bytes, MiB, md5 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient } from '../support/programs/run.js'
import { bodyOf, sdkFor } from '../support/programs/sdk.js'
import { endsWithUs } from '../support/server/child.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'
import { until } from '../support/waiting.js'

const Bucket = 'forms'
// biome-ignore lint/suspicious/noTemplateCurlyInString: S3's variable, word for word
const FILENAME = '${filename}'

inEachMode(t, async (t, server) => {
  const client = sdkFor(t, server)
  await client.createBucket({ Bucket })
  await t.test('SDK v3', (t) => sdk(t, client))
  await t.test('anonymous', (t) => anonymous(t, client, server))
  // The gateway makes no difference to how a form is read.
  if (server.mode === 'legacy') return
  await t.test('answers', (t) => answers(t, client, server))
  await t.test('refused', (t) => refused(t, client, server))
  await t.test('browser', (t) => browser(t, client))
})

interface Posting {
  readonly url: string
  readonly fields: Record<string, string>
}

function presign(client: S3, Key: string, more: Partial<PresignedPostOptions> = {}): Promise<Posting> {
  return createPresignedPost(client, { Bucket, Key, Expires: 300, ...more })
}

function post(
  { url, fields }: Posting,
  content: Buffer | undefined,
  filename = 'photo.png',
  more: Record<string, string> = {},
): Promise<Response> {
  const form = new FormData()
  for (const [name, value] of Object.entries({ ...fields, ...more })) form.append(name, value)
  if (content) form.append('file', new Blob([content]), filename)
  return fetch(url, { method: 'POST', body: form, redirect: 'manual' })
}

async function keysOf(client: S3): Promise<string[]> {
  const { Contents = [] } = await client.listObjectsV2({ Bucket })
  return Contents.map(({ Key = '', ETag }) => `${Key} ${ETag}`)
}

async function sdk(t: Test, client: S3): Promise<void> {
  const content = bytes('form', 3 * MiB + 17)
  const posting = await presign(client, `up/${FILENAME}`, {
    Fields: {
      'Content-Type': 'image/png',
      'Cache-Control': 'no-cache',
      'x-amz-meta-colour': 'grün',
      acl: 'private',
      'x-amz-storage-class': 'STANDARD',
      tagging: '<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>',
      'x-amz-checksum-crc32': crc32(content),
    },
    Conditions: [['content-length-range', 1, 4 * MiB]],
  })
  const answer = await post(posting, content, 'C:\\pictures\\é 1.png')
  t.equal(answer.status, 204, await answer.text())
  t.equal(answer.headers.get('etag'), `"${md5(content)}"`)
  t.ok((await bodyOf(client, { Bucket, Key: 'up/é 1.png' })).equals(content))
  const head = await client.headObject({ Bucket, Key: 'up/é 1.png', ChecksumMode: 'ENABLED' })
  t.match(head, { ContentType: 'image/png', CacheControl: 'no-cache', ChecksumCRC32: crc32(content) })
  t.equal(head.Metadata?.colour, '=?UTF-8?Q?gr=C3=BCn?=', 'mail-safe, as in S3')
  t.same((await client.getObjectTagging({ Bucket, Key: 'up/é 1.png' })).TagSet, [{ Key: 'a', Value: '1' }])
  t.equal((await post(await presign(client, 'empty'), Buffer.alloc(0))).status, 204)
  t.match((await client.headObject({ Bucket, Key: 'empty' })).ContentType, /octet-stream/)
}

async function answers(t: Test, client: S3, server: Dealgate): Promise<void> {
  const content = Buffer.from('hello')
  const etag = `"${md5(content)}"`
  const withField = async (name: string, value: string) =>
    post(await presign(client, 'a & b', { Fields: { [name]: value } }), content)
  t.equal((await withField('success_action_status', '200')).status, 200)
  t.equal((await withField('success_action_status', '404')).status, 204)
  const created = await withField('success_action_status', '201')
  t.equal(created.status, 201)
  const location = `${server.endpoint}/${Bucket}/a%20%26%20b`
  t.equal(created.headers.get('location'), location)
  const document = await created.text()
  t.match(document, `<PostResponse><Location>${location}</Location><Bucket>${Bucket}</Bucket><Key>a &amp; b</Key>`)
  t.match(document, `<ETag>&quot;${md5(content)}&quot;</ETag>`)
  const redirected = await withField('success_action_redirect', 'http://127.0.0.1:1/done?x=1#top')
  t.equal(redirected.status, 303)
  const query = `bucket=${Bucket}&key=a%20%26%20b&etag=${encodeURIComponent(etag)}`
  t.equal(redirected.headers.get('location'), `http://127.0.0.1:1/done?x=1&${query}#top`)
  t.equal((await withField('success_action_redirect', 'javascript:alert(1)')).status, 204)
}

async function refused(t: Test, client: S3, server: Dealgate): Promise<void> {
  const content = Buffer.from('content')
  await client.putObject({ Bucket, Key: 'kept', Body: 'old' })
  const before = await keysOf(client)
  const good = await presign(client, 'kept', { Conditions: [['content-length-range', 8, 10]] })
  const without = (...names: string[]): Posting => {
    const fields = Object.entries(good.fields).filter(([name]) => !names.includes(name))
    return { ...good, fields: Object.fromEntries(fields) }
  }
  const expect = async (code: string, status: number, sent: Promise<Response>) => {
    const answer = await sent
    const text = await answer.text()
    t.same([answer.status, /<Code>(\w+)</.exec(text)?.[1]], [status, code], text)
  }
  const policy = Buffer.from('{"expiration":"2099","conditions":[]}').toString('base64')
  const beyond: Record<string, string>[] = [{ 'x-amz-meta-extra': '1' }, { key: 'other' }, { bucket: 'other' }]
  for (const more of beyond) await expect('AccessDenied', 403, post(good, content, 'f', more))
  await expect('AccessDenied', 403, post(without('X-Amz-Signature', 'Policy'), content))
  for (const name of ['X-Amz-Signature', 'Policy', 'key'])
    await expect('InvalidArgument', 400, post(without(name), content))
  await expect('InvalidArgument', 400, post(good, undefined))
  const forged: Record<string, string>[] = [{ 'X-Amz-Signature': '0'.repeat(64) }, { Policy: policy }]
  for (const more of forged) await expect('SignatureDoesNotMatch', 403, post(good, content, 'f', more))
  const unknown = (good.fields['X-Amz-Credential'] ?? '').replace(/^[^/]+/, 'UNKNOWN')
  await expect('InvalidAccessKeyId', 403, post(good, content, 'f', { 'X-Amz-Credential': unknown }))
  await expect('EntityTooSmall', 400, post(good, content))
  await expect('EntityTooLarge', 400, post(good, Buffer.alloc(11)))
  await expect('EntityTooLarge', 400, post(good, Buffer.alloc(2 * MiB)))
  for (const [Fields, code, status] of [
    [{ 'x-amz-checksum-crc32': 'AAAAAA==' }, 'BadDigest', 400],
    [{ 'x-amz-storage-class': 'GLACIER' }, 'InvalidStorageClass', 400],
    [{ 'x-amz-server-side-encryption': 'aws:kms:dsse' }, 'NotImplemented', 501],
    [{ tagging: '<Tagging/>' }, 'MalformedXML', 400],
    [{ 'x-amz-meta-a': 'a\u0001b' }, 'InvalidArgument', 400],
    [{ 'x-amz-meta-a': 'x'.repeat(3000) }, 'MetadataTooLarge', 400],
    [{ 'x-amz-security-token': 'x' }, 'InvalidToken', 400],
  ] as const)
    await expect(code, status, post(await presign(client, 'kept', { Fields }), content))
  await expect('AccessDenied', 403, post(await presign(client, 'kept', { Expires: -1 }), content))
  await expect('PreconditionFailed', 412, fetch(`${server.endpoint}/${Bucket}`, { method: 'POST', body: 'x' }))
  await expect('NoSuchBucket', 404, post(await presign(client, 'k', { Bucket: 'no-such' }), content))
  t.same(await keysOf(client), before, 'nothing has changed')
}

async function anonymous(t: Test, client: S3, server: Dealgate): Promise<void> {
  const drop = (key: string, more = {}) =>
    post({ url: `${server.endpoint}/${Bucket}`, fields: { key, ...more } }, Buffer.from('dropped'))
  t.equal((await drop('inbox/a')).status, 403)
  const everyone = { Effect: 'Allow', Principal: '*', Action: 's3:PutObject' }
  const Statement = [{ ...everyone, Resource: `arn:aws:s3:::${Bucket}/inbox/*` }]
  await client.putBucketPolicy({ Bucket, Policy: JSON.stringify({ Version: '2012-10-17', Statement }) })
  const answer = await drop('inbox/a')
  t.equal(answer.status, 204, await answer.text())
  t.equal((await bodyOf(client, { Bucket, Key: 'inbox/a' })).toString(), 'dropped')
  t.equal((await drop('elsewhere/a')).status, 403)
  t.equal((await drop('inbox/b', { tagging: '<Tagging><TagSet/></Tagging>' })).status, 403)
}

/**
 * A page of another origin, in a real browser: a form sent with fetch, a PUT that needs a preflight, and a plain form
 * that ends in a redirect.
 */
async function browser(t: Test, client: S3): Promise<void> {
  const program = await findClient(t, 'chromium')
  if (!program) return
  const reports: Record<string, string>[] = []
  const pages = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://page')
    if (url.pathname === '/report') reports.push(Object.fromEntries(url.searchParams))
    const page = url.pathname === '/page' ? pageOf(url.searchParams.get('steps') ?? '') : 'ok'
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
  })
  const allowed = await listen(pages, t)
  const rule = {
    ...{ AllowedOrigins: [allowed], AllowedMethods: ['POST', 'PUT', 'GET'], ExposeHeaders: ['ETag'], MaxAgeSeconds: 5 },
    AllowedHeaders: ['content-type', 'x-amz-meta-*'],
  }
  await client.putBucketCors({ Bucket, CORSConfiguration: { CORSRules: [rule] } })
  const form = await presign(client, `web/${FILENAME}`)
  const plain = await presign(client, 'web/plain', { Fields: { success_action_redirect: `${allowed}/report` } })
  const put = await getSignedUrl(client, new PutObjectCommand({ Bucket, Key: 'web/put', Metadata: { from: 'page' } }), {
    unhoistableHeaders: new Set(['x-amz-meta-from']),
  })
  const get = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'web/put' }))
  const steps = Buffer.from(JSON.stringify({ form, plain, put, get, reports: `${allowed}/report` })).toString(
    'base64url',
  )
  const visit = async (origin: string, count: number) => {
    reports.length = 0
    const folder = temporaryFolder(t)
    const child = spawn(
      program,
      [
        ...['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'],
        ...[`--user-data-dir=${folder}`, '--remote-debugging-port=0', `${origin}/page?steps=${steps}`],
      ],
      // Its temporary files go with the folder; by a short path, for there is a socket among them.
      { stdio: 'ignore', cwd: folder, env: { PATH: process.env.PATH, HOME: folder, TMPDIR: '.' } },
    )
    endsWithUs(child)
    const ended = once(child, 'close')
    try {
      await until('the page has reported', () => reports.length >= count)
    } finally {
      child.kill('SIGTERM')
      await ended
    }
    return [...reports]
  }
  const [fetched, redirected] = await visit(allowed, 2)
  const etag = `"${md5(Buffer.from('from the page'))}"`
  t.match(fetched, {
    form: `204 ${etag}`,
    put: `200 ${etag}`,
    get: '200 from the page',
    other: /TypeError/,
  })
  t.match(redirected, { bucket: Bucket, key: 'web/plain' })
  t.match(await client.headObject({ Bucket, Key: 'web/put' }), { Metadata: { from: 'page' } })
  t.equal((await bodyOf(client, { Bucket, Key: 'web/plain' })).toString(), 'typed')

  const [stranger] = await visit(allowed.replace('127.0.0.1', 'localhost'), 1)
  t.match(stranger, { form: /TypeError/, put: /TypeError/, get: /TypeError/ }, 'another origin sees nothing')
}

function pageOf(steps: string): string {
  return `<!doctype html><meta charset="utf-8"><body><script>
    const { form, plain, put, get, reports } = JSON.parse(atob(${JSON.stringify(steps)}.replace(/-/g, '+').replace(/_/g, '/')))
    const attempt = (run) => run().catch((error) => String(error))
    async function main() {
      const told = {}
      told.form = await attempt(async () => {
        const data = new FormData()
        for (const [name, value] of Object.entries(form.fields)) data.append(name, value)
        data.append('file', new File(['from the page'], 'näme.txt'))
        const answer = await fetch(form.url, { method: 'POST', body: data })
        return answer.status + ' ' + answer.headers.get('etag')
      })
      told.put = await attempt(async () => {
        const answer = await fetch(put, { method: 'PUT', body: 'from the page', headers: { 'x-amz-meta-from': 'page' } })
        return answer.status + ' ' + answer.headers.get('etag')
      })
      told.get = await attempt(async () => {
        const answer = await fetch(get)
        return answer.status + ' ' + (await answer.text()).slice(0, 40)
      })
      told.other = await attempt(async () => String((await fetch(put, { method: 'DELETE' })).status))
      // Not by fetch: the page may be one that must not read anything.
      await new Promise((resolve) => {
        const image = new Image()
        image.onerror = image.onload = resolve
        image.src = reports + '?' + new URLSearchParams(told)
      })
      const node = document.createElement('form')
      node.method = 'POST'
      node.enctype = 'multipart/form-data'
      node.action = plain.url
      for (const [name, value] of [...Object.entries(plain.fields), ['file', 'typed']])
        node.append(Object.assign(document.createElement('input'), { name, value }))
      document.body.append(node)
      node.submit()
    }
    main()
  </script>`
}

function crc32(data: Buffer): string {
  const checksum = createChecksum('CRC32')
  checksum.update(data)
  return checksum.digest()
}
