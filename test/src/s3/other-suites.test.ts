import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t from 'tap'
import { sdkFor } from '../../support/programs/sdk.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { exchange, headText } from '../../support/sign/raw.js'
import { send } from '../../support/sign/send.js'

// Answers in which S3's own are particular, as the suites of other servers ask for them. No gateway decides them.

t.test('answers', async (t) => {
  const server = await startDealgate(t)
  const ask = (method: string, target: string, headers: Record<string, string> = {}, body = '') =>
    send(server, { method, target, headers, body: Buffer.from(body) })
  const codeOf = async (...args: Parameters<typeof ask>) => {
    const { status, code } = await ask(...args)
    return [status, code]
  }
  t.equal((await ask('PUT', '/box')).status, 200)

  t.test('a write names ETags that it does not replace', async (t) => {
    const unless = async (tag: string, key = 'once') => codeOf('PUT', `/box/${key}`, { 'if-none-match': tag }, 'x')
    t.same(await unless('"a"'), [200, undefined], 'no object')
    const etag = String((await ask('HEAD', '/box/once')).headers.etag)
    for (const tag of [etag, etag.slice(1, -1), `"a", ${etag}`, '*'])
      t.same(await unless(tag), [412, 'PreconditionFailed'], tag)
    for (const tag of ['"a"', 'badetag', '"a", "b"']) t.same(await unless(tag), [200, undefined], tag)
    const copy = { 'x-amz-copy-source': '/box/once', 'if-none-match': etag }
    t.same(await codeOf('PUT', '/box/once', { ...copy, 'x-amz-metadata-directive': 'REPLACE' }), [
      412,
      'PreconditionFailed',
    ])
    const upload = async (tag: string) => {
      const begun = (await ask('POST', '/box/once?uploads=')).body.toString()
      const id = /<UploadId>(.*)<\/UploadId>/.exec(begun)?.[1]
      const part = await ask('PUT', `/box/once?partNumber=1&uploadId=${id}`, {}, 'y')
      const parts = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
      return codeOf('POST', `/box/once?uploadId=${id}`, { 'if-none-match': tag }, parts)
    }
    t.same(await upload(etag), [412, 'PreconditionFailed'])
    t.same(await upload('"a"'), [200, undefined])
    t.equal((await ask('GET', '/box/once')).body.toString(), 'y')
  })

  t.test('an If-Match may lack a quote', async (t) => {
    const etag = String((await ask('PUT', '/box/quoted', {}, 'x')).headers.etag)
    for (const given of [etag, etag.slice(1), etag.slice(0, -1), etag.slice(1, -1)])
      t.equal((await ask('PUT', '/box/quoted', { 'if-match': given }, 'x')).status, 200, given)
    t.equal((await ask('PUT', '/box/quoted', { 'if-match': etag.slice(2) }, 'x')).status, 412)
  })

  t.test('a bucket without ownership controls, and what the ACL of an object leaves its owner', async (t) => {
    t.equal((await ask('PUT', '/kept', { 'x-amz-object-ownership': 'BucketOwnerEnforced' })).status, 200)
    t.match((await ask('GET', '/kept?ownershipControls=')).body.toString(), 'BucketOwnerEnforced')
    for (const _ of [1, 2]) t.equal((await ask('DELETE', '/kept?ownershipControls=')).status, 204)
    t.same(await codeOf('GET', '/kept?ownershipControls='), [404, 'OwnershipControlsNotFoundError'])
    t.equal((await ask('PUT', '/kept/k', {}, 'x')).status, 200)
    const before = (await ask('GET', '/kept/k?acl=')).body.toString()
    t.equal((await ask('PUT', '/kept/k?acl=', {}, before.replace('FULL_CONTROL', 'READ_ACP'))).status, 200)
    const after = (await ask('GET', '/kept/k?acl=')).body.toString()
    t.match(after, '<Permission>READ_ACP</Permission>')
    t.notMatch(after, 'FULL_CONTROL')
    t.equal((await ask('PUT', '/kept/k?acl=', {}, before)).status, 200)
    t.equal((await ask('GET', '/kept/k?acl=')).body.toString(), before)
  })

  t.test('whether a bucket is public, also without a policy', async (t) => {
    t.equal((await ask('PUT', '/shown', { 'x-amz-object-ownership': 'ObjectWriter' })).status, 200)
    const isPublic = async () =>
      /<IsPublic>(\w+)</.exec((await ask('GET', '/shown?policyStatus=')).body.toString())?.[1]
    t.equal(await isPublic(), 'false')
    for (const acl of ['public-read', 'authenticated-read']) {
      t.equal((await ask('PUT', '/shown?acl=', { 'x-amz-acl': acl })).status, 200)
      t.equal(await isPublic(), 'true', acl)
    }
    const block =
      '<PublicAccessBlockConfiguration><IgnorePublicAcls>true</IgnorePublicAcls></PublicAccessBlockConfiguration>'
    t.equal((await ask('PUT', '/shown?publicAccessBlock=', {}, block)).status, 200)
    t.equal(await isPublic(), 'false', 'ignored')
    t.equal((await ask('DELETE', '/shown?publicAccessBlock=')).status, 204)
    t.equal((await ask('PUT', '/shown?acl=', { 'x-amz-acl': 'private' })).status, 200)
    t.equal(await isPublic(), 'false')
    t.same(await codeOf('GET', '/absent?policyStatus='), [404, 'NoSuchBucket'])
  })

  t.test('the place where a web site sends visitors of an object', async (t) => {
    const header = 'x-amz-website-redirect-location'
    const copyOf = { 'x-amz-copy-source': '/box/sent' }
    const placeOf = async (key: string) => {
      const [got, head] = [await ask('GET', `/box/${key}`), await ask('HEAD', `/box/${key}`)]
      t.equal(got.headers[header], head.headers[header])
      return head.headers[header]
    }
    const to = { [header]: 'https://a.example/?b=c' }
    t.equal((await ask('PUT', '/box/sent', to, 'x')).status, 200)
    t.equal(await placeOf('sent'), to[header])
    t.equal((await ask('PUT', '/box/copied', copyOf)).status, 200)
    t.equal(await placeOf('copied'), undefined, 'a copy does not take it')
    t.equal((await ask('PUT', '/box/copied', { ...copyOf, [header]: '/there' })).status, 200)
    t.equal(await placeOf('copied'), '/there')
    t.equal((await ask('PUT', '/box/sent', { ...copyOf, [header]: '/there' })).status, 200, 'a change of it alone')
    t.equal(await placeOf('sent'), '/there')
    const begun = (await ask('POST', '/box/parts?uploads=', to)).body.toString()
    const id = /<UploadId>(.*)<\/UploadId>/.exec(begun)?.[1]
    const part = await ask('PUT', `/box/parts?partNumber=1&uploadId=${id}`, {}, 'x')
    const parts = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
    t.equal((await ask('POST', `/box/parts?uploadId=${id}`, {}, parts)).status, 200)
    t.equal(await placeOf('parts'), to[header])
    t.equal((await ask('PUT', '/box/parts', {}, 'y')).status, 200)
    t.equal(await placeOf('parts'), undefined, 'the next object has none')
  })

  t.test('an unsigned body, and a framed one of known length, state the length of the data', async (t) => {
    const everyone = { Effect: 'Allow', Principal: '*', Action: 's3:PutObject', Resource: 'arn:aws:s3:::open/*' }
    t.equal((await ask('PUT', '/open')).status, 200)
    t.equal((await ask('DELETE', '/open?publicAccessBlock=')).status, 204)
    t.equal((await ask('PUT', '/open?policy=', {}, JSON.stringify({ Statement: everyone }))).status, 204)
    const chunks = '1\r\nx\r\n0\r\n\r\n'
    const unsigned = (headers: Record<string, string>, body: string) =>
      exchange(server, (socket) => {
        const { host } = new URL(server.endpoint)
        socket.write(`${headText('PUT', '/open/k', { host, connection: 'close', ...headers })}${body}`)
      })
    const framed = { 'content-encoding': 'aws-chunked' }
    const trailing = { ...framed, 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' }
    const http = { 'transfer-encoding': 'chunked' }
    const inChunks = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
    for (const [headers, body] of [
      [http, inChunks('x')],
      [{ ...http, ...framed }, inChunks(chunks)],
      [{ ...http, ...trailing }, inChunks(chunks)],
      [{ 'content-length': String(chunks.length), ...trailing }, chunks],
    ] as const)
      t.match(
        (await unsigned(headers, body)).text,
        /^HTTP\/1.1 411 .*<Code>MissingContentLength</s,
        JSON.stringify(headers),
      )
    t.equal((await ask('GET', '/open/k')).status, 404)
    const hash = { 'content-length': '1', 'x-amz-content-sha256': 'UNSIGNED-payload' }
    const other = (await unsigned(hash, 'x')).text
    t.match(other, '<ClientComputedContentSHA256>UNSIGNED-payload<', 'a hash that no body has')
    t.equal((await ask('GET', '/open/k')).status, 404)
    const stated = { ...http, ...trailing, 'x-amz-decoded-content-length': '1' }
    t.match((await unsigned(stated, inChunks(chunks))).text, /^HTTP\/1.1 200 /)
    const sending = { method: 'PUT', target: '/open/k', payloadHash: 'STREAMING-UNSIGNED-PAYLOAD-TRAILER' }
    t.equal((await send(server, { ...sending, body: Buffer.from(chunks) })).status, 411, 'signed, of known length')
  })

  t.test('a listing in any order is one in order, and has no folders', async (t) => {
    t.equal((await ask('PUT', '/unordered')).status, 200)
    for (const key of ['b', 'a/1', 'a/2']) t.equal((await ask('PUT', `/unordered/${key}`, {}, 'x')).status, 200)
    for (const type of ['', '&list-type=2']) {
      const list = (more: string) => ask('GET', `/unordered?allow-unordered=true&max-keys=2${type}${more}`)
      const keys = [...(await list('')).body.toString().matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => key)
      t.same(keys, ['a/1', 'a/2'])
      t.match(await list('&delimiter=/'), { status: 400, code: 'InvalidArgument' })
      t.equal((await ask('GET', `/unordered?allow-unordered=false&delimiter=/${type}`)).status, 200)
    }
  })

  t.test('an unsigned HeadBucket that is refused names the region', async (t) => {
    const answer = await fetch(`${server.endpoint}/box`, { method: 'HEAD' })
    t.same([answer.status, answer.headers.get('x-amz-bucket-region')], [403, server.region])
  })

  t.test('forms whose fields have file names, two on one connection', async (t) => {
    const s3 = sdkFor(t, server)
    const formOf = async (Key: string, content: string, more: string, last: boolean) => {
      const { fields } = await createPresignedPost(s3, { Bucket: 'box', Key })
      const parts = Object.entries(fields).map(
        ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`,
      )
      const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
      const body = `${parts.join('')}${file}${content}\r\n--b--\r\n`
      const headers = {
        host: new URL(server.endpoint).host,
        'content-type': 'multipart/form-data; boundary=b',
        'content-length': String(Buffer.byteLength(body)),
        ...(last && { connection: 'close' }),
      }
      return headText('POST', '/box', headers) + body
    }
    const one = await formOf('a.txt', 'first', '; filename="x"', false)
    const two = await formOf('b.txt', 'second', '; filename=""; foo="bar"', true)
    const { text } = await exchange(server, (socket) => socket.write(one + two))
    t.equal(text.match(/HTTP\/1\.1 204/g)?.length, 2, text)
    t.equal((await ask('GET', '/box/a.txt')).body.toString(), 'first')
    t.equal((await ask('GET', '/box/b.txt')).body.toString(), 'second')
  })
})
