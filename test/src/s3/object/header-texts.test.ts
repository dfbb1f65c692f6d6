import t, { type Test } from 'tap'
import { presignQuery } from '../../../../common/sigv4.js'
import { mailSafe } from '../../../../src/http/encoded-words.js'
import { utf8Bytes } from '../../../../src/http/header-text.js'
import { sha256 } from '../../../support/content/content.js'
import { type Dealgate, inEachMode } from '../../../support/server/dealgate.js'
import { type Answer, answerTo, type Headers, open, type Sending, send, sign } from '../../../support/sign/send.js'

/** Texts by every way into a header, and out of it: order and encoding of headers decide whether an answer comes. */
const TEXTS = ['a.pdf', 'é.pdf', '語.pdf', '😀.pdf', 'ÿ 語 😀 \u0085.pdf']
const disposition = (text: string) => `attachment; filename="${text}"`

const STORED = ['content-disposition', 'content-language', 'cache-control', 'expires'] as const
const REDIRECT = 'x-amz-website-redirect-location'
const OVERRIDES = [...STORED, 'content-type', 'content-encoding'] as const

inEachMode(t, async (t, server) => {
  await send(server, { method: 'PUT', target: '/texts' })
  await t.test('of the headers of a request', (t) => fromHeaders(t, server))
  await t.test('of the parameters of a presigned request', (t) => fromQuery(t, server))
  await t.test('of the fields of a form', (t) => fromForm(t, server))
  await t.test('of a batch job', (t) => fromJob(t, server))
})

/** As `send`, whose Content-Disposition Node reads anew, because it knows the length of the body by then. */
function store(server: Dealgate, method: string, target: string, headers: Headers, body = ''): Promise<Answer> {
  const signed = sign(server, { method, target, headers, payloadHash: sha256(body) })
  const request = open(server, method, target, { ...signed.headers, 'content-length': String(body.length) })
  const answer = answerTo(request)
  if (body !== '') request.write(Buffer.from(body))
  request.end()
  return answer
}

/** The headers of every answer that shows the object. */
async function shown(server: Dealgate, target: string): Promise<readonly (readonly [string, Answer])[]> {
  const ways: [string, Sending][] = [
    ['GET', { method: 'GET', target }],
    ['HEAD', { method: 'HEAD', target }],
    ['range', { method: 'GET', target, headers: { range: 'bytes=0-1' } }],
    ['304', { method: 'GET', target, headers: { 'if-none-match': '*' } }],
  ]
  return Promise.all(ways.map(async ([way, sending]) => [way, await send(server, sending)] as const))
}

async function check(t: Test, server: Dealgate, target: string, expected: Headers): Promise<void> {
  for (const [way, answer] of await shown(server, target)) {
    t.ok([200, 206, 304].includes(answer.status), `${way} ${target}: ${answer.status}`)
    for (const [name, value] of Object.entries(expected)) t.equal(answer.headers[name], value, `${way} ${name}`)
  }
}

async function fromHeaders(t: Test, server: Dealgate): Promise<void> {
  // The bytes of Latin-1, too, which are not valid in UTF-8.
  for (const [i, bytes] of [...TEXTS.map(utf8Bytes), '\u00e9.pdf'].entries()) {
    const headers = {
      ...Object.fromEntries(STORED.map((name) => [name, disposition(bytes)])),
      [REDIRECT]: `/${bytes}`,
      'x-amz-meta-text': bytes,
    }
    const expected = { ...headers, 'x-amz-meta-text': mailSafe(bytes) }
    t.match(expected['x-amz-meta-text'], /^[\x20-\x7e]*$/)
    const target = `/texts/header-${i}`
    t.equal((await store(server, 'PUT', target, headers, 'text')).status, 200)
    await check(t, server, target, expected)

    const copied = { 'x-amz-copy-source': target, [REDIRECT]: `/${bytes}` }
    t.equal((await store(server, 'PUT', `${target}-copy`, copied)).status, 200)
    await check(t, server, `${target}-copy`, expected)

    const begun = await store(server, 'POST', `${target}-parts?uploads`, headers)
    const id = /<UploadId>([^<]*)/.exec(begun.body.toString())?.[1] ?? ''
    const part = await send(server, {
      method: 'PUT',
      target: `${target}-parts?partNumber=1&uploadId=${id}`,
      body: Buffer.from('text'),
    })
    const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    const completed = { method: 'POST', target: `${target}-parts?uploadId=${id}`, body: Buffer.from(list) }
    t.equal((await send(server, completed)).status, 200)
    await check(t, server, `${target}-parts`, expected)
  }
}

function presigned(server: Dealgate, method: string, path: string, query: [string, string][]): Promise<Answer> {
  const { endpoint, accessKey: accessKeyId, secretKey: secretAccessKey, region } = server
  const signed = presignQuery({
    ...{ brand: 'Amz', method, path, host: new URL(endpoint).host, accessKeyId, secretAccessKey, region },
    ...{ expires: 300, now: new Date(), query },
  })
  const request = open(server, method, `${path}?${signed}`, method === 'PUT' ? { 'content-length': '4' } : {})
  const answer = answerTo(request)
  request.end(method === 'PUT' ? 'text' : undefined)
  return answer
}

async function fromQuery(t: Test, server: Dealgate): Promise<void> {
  const target = '/texts/query'
  await send(server, { method: 'PUT', target, body: Buffer.from('text') })
  for (const text of TEXTS)
    for (const name of OVERRIDES)
      for (const method of ['GET', 'HEAD']) {
        const answer = await presigned(server, method, target, [[`response-${name}`, disposition(text)]])
        t.equal(answer.status, 200, `${method} ${name} ${text}`)
        t.equal(answer.headers[name], utf8Bytes(disposition(text)))
      }
  const split = await presigned(server, 'GET', target, [['response-cache-control', 'a\r\nx-own: b\0c\td']])
  t.match(split, { status: 200, headers: { 'cache-control': 'a  x-own: b c\td' } })
  t.notOk('x-own' in split.headers)

  for (const text of TEXTS) {
    t.equal((await presigned(server, 'PUT', target, [['x-amz-meta-text', text]])).status, 200)
    await check(t, server, target, { 'x-amz-meta-text': mailSafe(utf8Bytes(text)) })
  }
  for (const [name, value] of [
    ['x-amz-meta-text', 'a\r\nb'],
    ['x-amz-meta-text', 'a\0'],
    ['x-amz-meta-a b', 'c'],
    ['x-amz-meta-é', 'c'],
  ] as const)
    t.match(await presigned(server, 'PUT', target, [[name, value]]), { status: 400, code: 'InvalidArgument' }, value)
}

async function fromForm(t: Test, server: Dealgate): Promise<void> {
  const post = async (fields: Headers) => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ key: 'form', ...fields })) form.set(name, value)
    form.set('file', new Blob(['text']))
    const { headers, body } = await encoded(form)
    return send(server, { method: 'POST', target: '/texts', headers, body })
  }
  for (const text of TEXTS) {
    const fields = { 'Content-Disposition': disposition(text), 'x-amz-meta-text': text }
    t.equal((await post(fields)).status, 204)
    await check(t, server, '/texts/form', {
      'content-disposition': utf8Bytes(disposition(text)),
      'x-amz-meta-text': mailSafe(utf8Bytes(text)),
    })
  }
  for (const name of ['Content-Type', 'Content-Language', 'x-amz-meta-text', 'x-amz-meta-é'])
    t.match(await post({ [name]: 'a\0b' }), { status: 400, code: 'InvalidArgument' }, name)
}

async function encoded(form: FormData): Promise<{ headers: Headers; body: Buffer }> {
  const request = new Request('http://localhost', { method: 'POST', body: form })
  const type = request.headers.get('content-type') ?? ''
  return { headers: { 'content-type': type }, body: Buffer.from(await request.arrayBuffer()) }
}

/** What no header can hold is refused with the job, and not once for each object. */
async function fromJob(t: Test, server: Dealgate): Promise<void> {
  const create = (Copy: object) =>
    send(server, {
      method: 'POST',
      target: '/-/batch/v1',
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(
        JSON.stringify({ Operation: 'Copy', Filter: { Bucket: 'texts' }, Copy: { TargetBucket: 'texts', ...Copy } }),
      ),
    })
  for (const Copy of [
    { Metadata: { text: 'a\nb' } },
    { Metadata: { 'a b': 'c' } },
    { Metadata: {}, CacheControl: 'a\r' },
  ]) {
    const { status, body } = await create(Copy)
    t.equal(status, 400)
    t.match(body.toString(), /"InvalidArgument".*a header cannot hold/)
  }
}
