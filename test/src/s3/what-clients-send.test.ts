import { crc32 } from 'node:zlib'
import t, { type Test } from 'tap'
import { contentMd5, sha256 } from '../../support/content/content.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { signedChunks } from '../../support/sign/chunks.js'
import {
  type Answer,
  answerTo,
  open,
  type Sending,
  send,
  sign,
  targetOf,
  UNSIGNED_PAYLOAD,
} from '../../support/sign/send.js'

/**
 * Forms of requests that clients send at their defaults, answered as S3 answers them: the suite of Swift's s3api that
 * was checked against S3 is the source.
 */

const B = 'what-clients-send'
const UNSIGNED_TRAILER = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'
const STREAMING = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'
const DATA = Buffer.from('hello')
const CRC32 = crc32Of(DATA)

// Requests are read, and checksums kept, in the same way with each gateway.
t.test('full', async (t) => {
  const server = await startDealgate(t)
  const ask = (method: string, target: string, more: Partial<Sending> = {}) => send(server, { method, target, ...more })
  const put = (key: string, body: Buffer, headers: Record<string, string> = {}) =>
    ask('PUT', targetOf(B, key), { body, headers })
  const read = async (key: string) => (await ask('GET', targetOf(B, key))).body.toString()
  t.equal((await ask('PUT', `/${B}`)).status, 200)

  await t.test('a plus in x-amz-copy-source is a space, as url.QueryEscape of Go writes it', async (t) => {
    await put('a b', Buffer.from('space'))
    await put('a+b', Buffer.from('plus'))
    for (const [source, content] of [
      [`/${B}/a+b`, 'space'],
      [`/${B}/a%20b`, 'space'],
      [`${B}%2Fa%2Bb`, 'plus'],
      [`/${B}/a%2Bb?versionId=null`, 'plus'],
    ] as const) {
      t.equal((await ask('PUT', targetOf(B, 'copy'), { headers: { 'x-amz-copy-source': source } })).status, 200, source)
      t.equal(await read('copy'), content, source)
    }
    const { headers } = await ask('POST', targetOf(B, 'parts', 'uploads'))
    t.equal(headers['content-type'], 'application/xml')
    const begun = await ask('POST', targetOf(B, 'parts', 'uploads'))
    const id = textOf(begun, 'UploadId')
    const part = await ask('PUT', targetOf(B, 'parts', `partNumber=1&uploadId=${id}`), {
      headers: { 'x-amz-copy-source': `/${B}/a+b` },
    })
    t.equal(textOf(part, 'ETag'), `&quot;${(await put('etag', Buffer.from('space'))).headers.etag?.slice(1, -1)}&quot;`)
  })

  await t.test('Content-Encoding aws-chunked beside the hash of the body', async (t) => {
    const body = Buffer.from('not framed')
    t.equal((await put('plain', body, { 'content-encoding': 'gzip, aws-chunked' })).status, 200)
    const got = await ask('GET', targetOf(B, 'plain'))
    t.same([got.body.toString(), got.headers['content-encoding']], ['not framed', 'gzip'])
    const unclear = { 'content-encoding': 'aws-chunked', 'x-amz-decoded-content-length': '3' }
    t.equal((await put('plain', body, unclear)).code, 'InvalidRequest', 'two lengths of one body')
    t.equal(await read('plain'), 'not framed')
  })

  await t.test('Expect: an unknown one is passed over, 100-continue is answered', async (t) => {
    t.equal((await put('expected', DATA, { expect: '200-ok' })).status, 200)
    t.equal(await read('expected'), 'hello')
    t.equal((await ask('GET', targetOf(B, 'expected'), { headers: { expect: 'something=else' } })).status, 200)
    const { headers } = sign(server, { method: 'PUT', target: targetOf(B, 'waits'), payloadHash: sha256(DATA) })
    const request = open(server, 'PUT', targetOf(B, 'waits'), {
      ...headers,
      expect: '100-continue',
      'content-length': '5',
    })
    const answer = answerTo(request)
    request.on('continue', () => request.end(DATA))
    request.flushHeaders()
    t.equal((await answer).status, 200)
  })

  await t.test('an empty continuation-token is none', async (t) => {
    await put('listed/1', DATA)
    await put('listed/2', DATA)
    const list = async (more: string) =>
      (await ask('GET', `/${B}?list-type=2&prefix=listed%2F&continuation-token=${more}`)).body.toString()
    t.match(await list(''), /<ContinuationToken><\/ContinuationToken>.*<Key>listed\/1<.*<Key>listed\/2</s)
    const after = await list('&start-after=listed%2F1')
    t.notMatch(after, '<Key>listed/1<')
    t.match(after, '<Key>listed/2<')
    t.match(await list('bad'), '<Code>InvalidArgument</Code>')
  })

  await t.test('CreateBucket of a bucket of one’s own changes nothing', async (t) => {
    const rules =
      '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>'
    const body = Buffer.from(rules)
    t.equal((await ask('PUT', `/${B}?cors`, { body, headers: contentMd5(body) })).status, 200)
    const located = Buffer.from(
      '<CreateBucketConfiguration><LocationConstraint>us-east-1</LocationConstraint></CreateBucketConfiguration>',
    )
    for (const sent of [{}, { body: located }]) {
      const again = await ask('PUT', `/${B}`, sent)
      t.same([again.status, again.headers.location], [200, `/${B}`])
    }
    t.equal((await ask('GET', `/${B}?cors`)).status, 200, 'its settings stay')
    t.equal(await read('a+b'), 'plus', 'its objects stay')
    const tagged = Buffer.from(
      '<CreateBucketConfiguration><Tags><Tag><Key>a</Key><Value>b</Value></Tag></Tags></CreateBucketConfiguration>',
    )
    const refused = await ask('PUT', `/${B}`, { body: tagged })
    t.match([refused.status, refused.code], [409, 'BucketAlreadyOwnedByYou'], 'tags would be passed over')

    const open = { 'x-amz-object-ownership': 'ObjectWriter', 'x-amz-acl': 'public-read' }
    const create = async (headers: Record<string, string>) => (await ask('PUT', '/opened', { headers })).status
    t.equal(await create(open), 200)
    const same: readonly Record<string, string>[] = [open, {}]
    for (const headers of same) t.equal(await create(headers), 200, 'a repeated request changes nothing')
    for (const other of ['private', 'public-read-write', 'authenticated-read'])
      t.equal(await create({ ...open, 'x-amz-acl': other }), 409, `${other} would be passed over`)
    t.equal(await create({ 'x-amz-acl': 'private' }), 409)
    t.equal(await create({ 'x-amz-object-ownership': 'BucketOwnerPreferred' }), 409)
    t.equal((await ask('PUT', `/${B}`, { headers: { 'x-amz-acl': 'private' } })).status, 200)
    t.equal((await ask('PUT', `/${B}`, { headers: open })).status, 409)
  })

  await t.test('DeleteObjects wants a digest of its list', async (t) => {
    const body = Buffer.from('<Delete><Object><Key>listed/1</Key></Object></Delete>')
    const remove = (more: Partial<Sending>) => ask('POST', `/${B}?delete`, { body, ...more })
    for (const more of [{}, { payloadHash: UNSIGNED_PAYLOAD }]) {
      const answer = await remove(more)
      t.match([answer.status, answer.code], [400, 'InvalidRequest'])
      t.equal(answer.message, 'Missing required header for this request: Content-MD5 OR x-amz-checksum-*')
    }
    t.equal((await remove({ headers: { 'x-amz-checksum-crc32': CRC32 } })).code, 'BadDigest')
    t.equal((await remove({ headers: contentMd5('another') })).code, 'BadDigest')
    t.equal((await ask('HEAD', targetOf(B, 'listed/1'))).status, 200)
    t.match((await remove({ headers: { 'x-amz-checksum-crc32': crc32Of(body) } })).body.toString(), '<Deleted>')
    t.equal((await ask('HEAD', targetOf(B, 'listed/1'))).status, 404)
  })

  await t.test('DeleteObjects takes keys with control characters, as references', async (t) => {
    const keys = ['c/\u0001a', 'c/\tb', 'c/\nc', 'c/\rd', 'c/\u001fe', 'c/\u007ff', 'c/plain']
    const there: string[] = []
    for (const key of keys) if ((await put(key, DATA)).status === 200) there.push(key)
    t.ok(there.includes('c/plain'))
    const reference = (key: string) => key.replace(/[^a-z/]/g, (c) => `&#${c.charCodeAt(0)};`)
    const objects = keys.map((key) => `<Object><Key>${reference(key)}</Key></Object>`).join('')
    const body = Buffer.from(`<Delete>${objects}</Delete>`)
    const answer = await ask('POST', `/${B}?delete`, { body, headers: contentMd5(body) })
    t.equal(answer.status, 200)
    const text = answer.body.toString()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML cannot hold them
    t.notMatch(text.slice(text.indexOf('<DeleteResult')), /[\u0000-\u001f\u007f]/, 'the answer is XML')
    for (const key of there) {
      t.match(text, `<Deleted><Key>${reference(key)}</Key></Deleted>`)
      t.equal((await ask('HEAD', targetOf(B, key))).status, 404, JSON.stringify(key))
    }
    t.match((await ask('GET', `/${B}?list-type=2&prefix=c%2F`)).body.toString(), '<KeyCount>0</KeyCount>')
  })

  await t.test('DeleteObjects takes keys of white space alone', async (t) => {
    const keys = [' ', '  ']
    for (const key of keys) t.equal((await put(key, DATA)).status, 200)
    await put('beside', DATA)
    const body = Buffer.from(`<Delete><Object><Key> </Key></Object><Object><Key>&#32;&#32;</Key></Object></Delete>`)
    const answer = await ask('POST', `/${B}?delete`, { body, headers: contentMd5(body) })
    t.equal(answer.body.toString().split('<Deleted>').length - 1, 2, answer.body.toString())
    for (const key of keys) t.equal((await ask('HEAD', targetOf(B, key))).status, 404)
    t.equal(await read('beside'), 'hello')
  })

  await t.test('the framing of a trailer', (t) => trailers(t, server))
  await t.test('signed chunks', (t) => chunks(t, server))
  await t.test('digests in CompleteMultipartUpload', (t) => completing(t, server))

  await t.test('listings with encoding-type and checksums', async (t) => {
    await put('l/a+b c&\u00e9', DATA, { 'x-amz-checksum-crc32': CRC32 })
    await put('l/d e/f', DATA)
    await put('l/z', DATA)
    const encoded = '<Key>l/a%2Bb%20c%26%C3%A9</Key>'
    const first = (await ask('GET', `/${B}?prefix=l%2F&delimiter=%2F&encoding-type=url&max-keys=2`)).body.toString()
    t.match(first, '<EncodingType>url</EncodingType>')
    t.match(first, encoded)
    t.match(first, '<CommonPrefixes><Prefix>l/d%20e/</Prefix></CommonPrefixes>')
    const marker = /<NextMarker>([^<]*)</.exec(first)?.[1] ?? ''
    t.equal(marker, 'l/d%20e/')
    const next = await ask('GET', `/${B}?prefix=l%2F&delimiter=%2F&encoding-type=url&marker=${marker}`)
    t.match(next.body.toString(), /<Marker>l\/d%20e\/<.*<Key>l\/z</s)
    t.notMatch(next.body.toString(), '<CommonPrefixes>')
    for (const query of ['?prefix=l%2F', '?list-type=2&prefix=l%2F', '?versions&prefix=l%2F']) {
      const text = (await ask('GET', `/${B}${query}`)).body.toString()
      const sums = text.match(
        /<\/ETag><ChecksumAlgorithm>CRC32<\/ChecksumAlgorithm><ChecksumType>FULL_OBJECT<\/ChecksumType><Size>5</g,
      )
      t.equal(sums?.length, 1, query)
      const others = text.match(/<ChecksumAlgorithm>CRC64NVME<\/ChecksumAlgorithm><ChecksumType>FULL_OBJECT</g)
      t.equal(others?.length, (text.match(/<Size>/g)?.length ?? 0) - 1, 'the default of all others')
    }
    const uploads = (await ask('GET', `/${B}?uploads&encoding-type=url&prefix=parts`)).body.toString()
    t.match(uploads, '<EncodingType>url</EncodingType>')
  })

  await t.test('errors before an operation is selected', (t) => early(t, server))
})

async function trailers(t: Test, server: Dealgate): Promise<void> {
  const announced = 'x-amz-checksum-crc32'
  const line = `${announced}:${CRC32}`
  const target = targetOf(B, 'trailer')
  const upload = (ending: string, trailer: string | undefined, data = DATA) =>
    send(server, {
      method: 'PUT',
      target,
      body: Buffer.from(`${data.length.toString(16)}\r\n${data}\r\n${ending}`, 'latin1'),
      payloadHash: UNSIGNED_TRAILER,
      headers: {
        'content-encoding': 'aws-chunked',
        'x-amz-decoded-content-length': String(data.length),
        ...(trailer === undefined ? {} : { 'x-amz-trailer': trailer }),
      },
    })
  const wrong = `${announced}:${crc32Of(Buffer.from('other'))}`
  for (const [what, ending, trailer, code] of [
    ['a space behind the colon', `0\r\n${announced}: ${CRC32}\r\n`, announced],
    ['no empty line', `0\r\n${line}\r\n`, announced],
    ['an empty line', `0\r\n${line}\r\n\r\n`, announced],
    ['as minio-go writes it', `0\r\n${line}\n\r\n\r\n`, announced],
    ['anything behind the empty line', `0\r\n${line}\r\n\r\n\u00ff\u00de\u00ad`, announced],
    ['the last of two values counts', `0\r\n${wrong}\r\n${line}\r\n`, announced],
    ['a comma behind the announced name', `0\r\n${line}\r\n`, `${announced},`],
    ['no trailer, no empty line', '0\r\n', undefined],
    ['LF alone', `0\r\n${line}\n`, announced, 'IncompleteBody'],
    ['no end of line', `0\r\n${line}`, announced, 'IncompleteBody'],
    ['an empty line before', `0\r\n\r\n${line}\r\n`, announced, 'MalformedTrailerError'],
    ['none where one is announced', '0\r\n\r\n', announced, 'MalformedTrailerError'],
    ['another than announced', `0\r\n${line}\r\n`, 'x-amz-checksum-crc32c', 'MalformedTrailerError'],
    ['one more than announced', `0\r\n${line}\r\nbonus: trailer\r\n`, announced, 'MalformedTrailerError'],
    ['the last of two values is wrong', `0\r\n${line}\r\n${wrong}\r\n`, announced, 'BadDigest'],
    ['no base64', `0\r\n${announced}:not-base-64\r\n`, announced, 'InvalidRequest'],
    ['a comma before the announced name', `0\r\n${line}\r\n`, `,${announced}`, 'InvalidRequest'],
    ['no checksum', '0\r\nfoo: bar\r\n', 'foo', 'InvalidRequest'],
  ] as const) {
    await send(server, { method: 'DELETE', target })
    const answer = await upload(ending, trailer)
    t.match([answer.status, answer.code], code ? [400, code] : [200, undefined], what)
    const stored = await send(server, { method: 'GET', target })
    t.equal(stored.status === 200 ? stored.body.toString() : '', code ? '' : 'hello', what)
  }
}

async function chunks(t: Test, server: Dealgate): Promise<void> {
  const target = targetOf(B, 'chunks')
  const upload = async (bend: (body: string) => string) => {
    const headers = { 'content-encoding': 'aws-chunked', 'x-amz-decoded-content-length': '5' }
    const signed = sign(server, { method: 'PUT', target, payloadHash: STREAMING, headers })
    const body = Buffer.from(bend(signedChunks(signed, DATA).toString('latin1')), 'latin1')
    const request = open(server, 'PUT', target, { ...signed.headers, 'content-length': String(body.length) })
    const answer = answerTo(request)
    request.end(body)
    return answer
  }
  t.equal((await upload((body) => body)).status, 200)
  t.equal((await upload((body) => body.replaceAll(';', ' ; '))).status, 200, 'spaces around the semicolon')
  t.equal((await upload((body) => body.replace(/chunk-signature=(\w+)/g, 'chunk-signature = $1 '))).status, 200)
  for (const [what, bend] of [
    ['no signature', (body: string) => body.replace(/;chunk-signature=\w+/, '')],
    ['something before the signature', (body: string) => body.replace(';', ';extra=param;')],
    ['something behind the signature', (body: string) => body.replace(/(chunk-signature=\w+)/, '$1;extra=param')],
  ] as const) {
    const answer = await upload(bend)
    t.match([answer.status, answer.code], [400, 'IncompleteBody'], what)
  }
  t.equal((await send(server, { method: 'GET', target })).body.toString(), 'hello', 'the old object stays')
}

async function completing(t: Test, server: Dealgate): Promise<void> {
  const target = (query: string) => targetOf(B, 'completed', query)
  const begin = async () => {
    const id = textOf(await send(server, { method: 'POST', target: target('uploads') }), 'UploadId')
    const sent = await send(server, { method: 'PUT', target: target(`partNumber=1&uploadId=${id}`), body: DATA })
    const part = `<Part><PartNumber>1</PartNumber><ETag>${sent.headers.etag}</ETag></Part>`
    const body = Buffer.from(`<CompleteMultipartUpload>${part}</CompleteMultipartUpload>`)
    return {
      body,
      complete: (headers: Record<string, string>) =>
        send(server, { method: 'POST', target: target(`uploadId=${id}`), body, headers }),
    }
  }
  const { body, complete } = await begin()
  t.equal((await complete(contentMd5('another'))).code, 'BadDigest', 'Content-MD5 is about the document')
  const ofDocument = await complete({ ...contentMd5(body), 'x-amz-checksum-crc32': crc32Of(body) })
  t.equal(ofDocument.status, 200, 'the checksum of the document, as for every other one')

  const other = await begin()
  t.equal((await other.complete({ 'x-amz-checksum-crc64nvme': 'AAAAAAAAAAA=' })).code, 'BadDigest')
  const full = { 'x-amz-checksum-type': 'FULL_OBJECT' }
  t.equal((await other.complete({ ...full, 'x-amz-checksum-crc32': crc32Of(body) })).code, 'BadDigest')
  t.equal((await other.complete({ ...full, 'x-amz-checksum-crc32': CRC32 })).status, 200)
}

async function early(t: Test, server: Dealgate): Promise<void> {
  const ask = (method: string, target: string, headers: Record<string, string> = {}) =>
    answerTo(open(server, method, target, headers).end())
  for (const [method, target, headers] of [
    ['PATCH', '/-/jobs/v1?format=json', {}],
    ['PATCH', `/${B}?x-share&format=json`, {}],
    ['GET', '/-/jobs/v1?format=json&x=%zz', {}],
    ['GET', '/-/jobs/v1?format=json', { authorization: 'Basic x' }],
  ] as const) {
    const answer = await ask(method, target, headers)
    t.equal(answer.headers['content-type'], 'application/json', `${method} ${target}`)
    t.type(JSON.parse(answer.body.toString()).Code, 'string')
  }
  for (const [method, target] of [
    ['PATCH', '/-/jobs/v1?format=xml'],
    ['PATCH', `/${B}/key?format=json`],
    ['GET', `/${B}/key?format=json&x=%zz`],
  ] as const) {
    const answer = await ask(method, target)
    t.equal(answer.headers['content-type'], 'application/xml', `${method} ${target}`)
    t.ok(answer.code)
  }
}

function textOf({ body }: Answer, name: string): string {
  return new RegExp(`<${name}>([^<]*)<`).exec(body.toString())?.[1] ?? ''
}

function crc32Of(data: Buffer): string {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(crc32(data))
  return value.toString('base64')
}
