import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import express, { type RequestHandler } from 'express'
import t, { type Test } from 'tap'
import { startInProcess } from '../support/server/in-process.js'
import { listen } from '../support/server/listen.js'
import { signedRequest } from '../support/sign/signed-request.js'

// It brings no types along.
const compression = createRequire(import.meta.url)('compression') as () => RequestHandler

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const Bucket = 'bucket'

/**
 * The address of an endpoint behind this middleware, with a bucket, and an endpoint of its own for what the middleware
 * would spoil.
 */
async function behind(t: Test, middleware: RequestHandler) {
  const { proxy, endpoint } = await startInProcess(t, 'full', { identities: [keys], passthrough: true })
  const app = express()
  app.use(middleware)
  app.use(proxy)
  const server = createServer(app)
  const url = await listen(server)
  t.teardown(() => server.close().closeAllConnections())
  t.equal((await signedRequest(endpoint, keys, { method: 'PUT', path: `/${Bucket}` })).status, 200)
  return { url, endpoint }
}

function clientOf(t: Test, endpoint: string): S3Client {
  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: keys })
  t.teardown(() => s3.destroy())
  return s3
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

t.test('downloads end behind compression(), byte for byte', async (t) => {
  const { url } = await behind(t, compression())
  const s3 = clientOf(t, url)
  // More than all buffers on the way hold together.
  const Body = Buffer.from(Array.from({ length: 700_000 }, (_, line) => `line ${line}\n`).join(''))
  for (const [Key, ContentType, encoding] of [
    ['text', 'text/plain', 'gzip'],
    ['image', 'image/png', null],
  ] as const) {
    await s3.send(new PutObjectCommand({ Bucket, Key, Body, ContentType }))
    const link = await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key }), { expiresIn: 600 })
    for (const body of [undefined, 'bytes=1000-3000999']) {
      const headers = { 'accept-encoding': 'gzip', ...(body !== undefined && { range: body }) }
      const response = await fetch(link, { headers })
      t.equal(response.status, body === undefined ? 200 : 206)
      t.equal(response.headers.get('content-encoding'), encoding, `${Key}: compressed as the application wants`)
      const expected = body === undefined ? Body : Body.subarray(1000, 3_001_000)
      t.equal(digest(new Uint8Array(await response.arrayBuffer())), digest(expected), Key)
    }
  }
  const small = await fetch(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: 'none' })))
  t.equal(small.status, 404)
  t.match(await small.text(), /<Code>NoSuchKey</)
})

t.test('a body parser ahead is refused in words, and by no status that clients repeat', async (t) => {
  const { url, endpoint } = await behind(t, express.raw({ type: () => true, limit: '10mb' }))
  const put = { method: 'PUT', path: `/${Bucket}/kept`, body: 'new' }
  t.equal((await signedRequest(endpoint, keys, { ...put, body: 'old' })).status, 200)
  const refused = await signedRequest(url, keys, put)
  t.equal(refused.status, 400)
  t.equal(refused.code, 'InvalidRequest')
  t.match(refused.body, /Mount dealgate before body parsers/)
  t.equal((await signedRequest(url, keys, { method: 'GET', path: put.path })).body, 'old')

  const rpc = await fetch(`${url}/gateway/webrpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': 'Mozilla/5.0' },
    body: '{"jsonrpc":"2.0","id":1,"method":"web.ListBuckets"}',
  })
  t.equal(rpc.status, 400)
  t.match(await rpc.text(), /mount dealgate before body parsers/)
})
t.test('express.json() ahead spoils bodies of JSON alone', async (t) => {
  const { url } = await behind(t, express.json())
  const put = (path: string, type: string, body: string) =>
    signedRequest(url, keys, { method: 'PUT', path: `/${Bucket}/${path}`, headers: { 'content-type': type }, body })
  t.equal((await put('text', 'text/plain', '{"a":1}')).status, 200)
  t.equal((await put('none', 'application/json', '')).status, 200, 'an empty body is none')
  const refused = await put('json', 'application/json', '{"a":1}')
  t.match([refused.status, refused.code], [400, 'InvalidRequest'])
  t.match(refused.body, /Mount dealgate before body parsers/)
  t.equal((await signedRequest(url, keys, { method: 'GET', path: `/${Bucket}/json` })).code, 'NoSuchKey')
  const s3 = clientOf(t, url)
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key: 'parts' }))
  const part = { Bucket, Key: 'parts', UploadId, PartNumber: 1 }
  const { ETag } = await s3.send(new UploadPartCommand({ ...part, Body: 'part' }))
  await s3.send(new CompleteMultipartUploadCommand({ ...part, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } }))
  t.equal((await signedRequest(url, keys, { method: 'GET', path: `/${Bucket}/parts` })).body, 'part')
})
