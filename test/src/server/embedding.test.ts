import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { PassThrough, type Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { GetObjectCommand } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import express, { type RequestHandler } from 'express'
import t, { type Test } from 'tap'
import { createPassthrough } from '../../../cli/passthrough/passthrough.js'
import { createLogger } from '../../../common/log.js'
import { startServices } from '../../../services/index.js'
import { createProxy } from '../../../src/server/create-proxy.js'
import { sha256 } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { Between } from '../../support/gateway/between.js'
import { sdkFor } from '../../support/programs/sdk.js'
import { startInProcess } from '../../support/server/in-process.js'
import { listen } from '../../support/server/listen.js'
import { presign, signedRequest, type Wanted } from '../../support/sign/signed-request.js'

// It brings no types along.
const compression = createRequire(import.meta.url)('compression') as () => RequestHandler
const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const Bucket = 'bucket'

/**
 * The address of an endpoint behind this middleware, with a bucket, and an endpoint of its own for what the middleware
 * would spoil.
 */
async function behind(t: Test, middleware: RequestHandler) {
  const { proxy, endpoint } = await startInProcess(t, 'full', { identities: [keys], passthrough: createPassthrough })
  const app = express()
  app.use(middleware)
  app.use(proxy)
  const server = createServer(app)
  const url = await listen(server)
  t.teardown(() => server.close().closeAllConnections())
  t.equal((await signedRequest(endpoint, keys, { method: 'PUT', path: `/${Bucket}` })).status, 200)
  return { url, endpoint }
}

const clientOf = (t: Test, endpoint: string) =>
  sdkFor(t, { endpoint, region: 'us-east-1', accessKey: keys.accessKeyId, secretKey: keys.secretAccessKey })

t.test('downloads end behind compression(), byte for byte', async (t) => {
  const { url } = await behind(t, compression())
  const s3 = clientOf(t, url)
  // More than all buffers on the way hold together.
  const Body = Buffer.from(Array.from({ length: 700_000 }, (_, line) => `line ${line}\n`).join(''))
  for (const [Key, ContentType, encoding] of [
    ['text', 'text/plain', 'gzip'],
    ['image', 'image/png', null],
  ] as const) {
    await s3.putObject({ Bucket, Key, Body, ContentType })
    const link = await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key }), { expiresIn: 600 })
    for (const body of [undefined, 'bytes=1000-3000999']) {
      const headers = { 'accept-encoding': 'gzip', ...(body !== undefined && { range: body }) }
      const response = await fetch(link, { headers })
      t.equal(response.status, body === undefined ? 200 : 206)
      t.equal(response.headers.get('content-encoding'), encoding, `${Key}: compressed as the application wants`)
      const expected = body === undefined ? Body : Body.subarray(1000, 3_001_000)
      t.equal(sha256(new Uint8Array(await response.arrayBuffer())), sha256(expected), Key)
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
  t.hasStrict(refused, { status: 400, code: 'InvalidRequest' })
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
// CompleteMultipartUpload and CopyObject that take long, behind middleware that gathers what is written before it sends
// anything.

/** How long a test waits for white space before it lets the gateway go on, ms. */
const PATIENCE_MS = 45_000

const decoders: Record<string, () => Transform> = { identity: () => new PassThrough(), gzip: createGunzip }

/**
 * An endpoint behind compression() over a gateway whose uploads to keys that begin with `slow` wait until they are let
 * go.
 */
async function startSlow(t: Test) {
  const root = temporaryFolder(t)
  const services = await startServices({ data: `${root}/services`, gateway: { host: '127.0.0.1', port: 0 } })
  t.teardown(() => services.stop())
  const account = await services.gateway.credentials()
  const between = await Between.start(t, { url: services.gateway.url, ...account })
  const waiting = new Map<string, () => void>()
  between.fate = async ({ method, path }) => {
    const key = /\/upload\/bucket\/(slow-[^?]+)/.exec(path)?.[1]
    if (method !== 'PUT' || key === undefined) return 'pass'
    await new Promise<void>((resolve) => waiting.set(key, resolve))
    return key.endsWith('-refused') ? { status: 403, type: 'application/xml', body: REFUSAL } : 'pass'
  }
  const gateway = { url: between.url, account, timeoutMs: 120_000 }
  const log = createLogger({ level: 'silent' })
  const proxy = await createProxy({ gateway, data: `${root}/proxy`, log, identities: [keys] })
  t.teardown(() => proxy.close())
  const server = createServer(express().use(compression()).use(proxy))
  const url = await listen(server)
  t.teardown(() => server.close().closeAllConnections())
  const s3 = clientOf(t, url)
  t.equal((await signedRequest(url, keys, { method: 'PUT', path: `/${Bucket}` })).status, 200)
  t.equal((await signedRequest(url, keys, { method: 'PUT', path: `/${Bucket}/source`, body: 'source' })).status, 200)
  return { url, s3, letGo: (key: string) => waiting.get(key)?.() }
}

const REFUSAL = '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'

type Scene = Awaited<ReturnType<typeof startSlow>>

/** Sends a request and lets the gateway go on once the client has read white space, or has waited long for it. */
async function watched({ url, letGo }: Scene, key: string, wanted: Wanted, encoding: string) {
  const { target, headers } = await presign(url, keys, wanted)
  const request = httpRequest(new URL(target, url), {
    method: wanted.method,
    headers: { ...headers, 'accept-encoding': encoding },
    agent: false,
  })
  request.end(wanted.body)
  const patience = setTimeout(() => letGo(key), PATIENCE_MS)
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    request.on('response', resolve).on('error', reject),
  )
  let text = ''
  let early = ''
  for await (const piece of response.pipe((decoders[encoding] ?? decoders.identity)?.() as Transform)) {
    text += piece
    if (early === '' && /^<\?xml[^>]*\?>\s* $/.test(text)) {
      early = text
      letGo(key)
    }
  }
  clearTimeout(patience)
  return { status: response.statusCode, encoding: response.headers['content-encoding'] ?? 'identity', early, text }
}

async function completion({ s3 }: Scene, Key: string): Promise<Wanted> {
  const { UploadId = '' } = await s3.createMultipartUpload({ Bucket, Key })
  const part = await s3.uploadPart({ Bucket, Key, UploadId, PartNumber: 1, Body: 'part' })
  const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.ETag}</ETag></Part></CompleteMultipartUpload>`
  return { method: 'POST', path: `/${Bucket}/${Key}`, query: { uploadId: UploadId }, body }
}

const copying = (Key: string): Wanted => ({
  method: 'PUT',
  path: `/${Bucket}/${Key}`,
  headers: { 'x-amz-copy-source': `/${Bucket}/source` },
})

t.test('white space comes in time behind compression(), and the document after it', async (t) => {
  const scene = await startSlow(t)
  const cases = Object.keys(decoders).flatMap((encoding) =>
    ['complete', 'copy', 'copy-refused'].map(async (what) => {
      const key = `slow-${encoding}-${what}`
      const wanted = what === 'complete' ? await completion(scene, key) : copying(key)
      const answer = await watched(scene, key, wanted, encoding)
      t.equal(answer.status, 200, key)
      t.equal(answer.encoding, encoding, key)
      t.match(answer.early, /^<\?xml version="1\.0" encoding="UTF-8"\?>\s* $/, `${key}: before the gateway was done`)
      const root = { complete: 'CompleteMultipartUploadResult', copy: 'CopyObjectResult' }[what] ?? 'Error'
      t.match(answer.text, new RegExp(`^<\\?xml[^>]*\\?>\\s+<${root}[ >][^]*</${root}>\\s*$`), key)
      if (root === 'Error') t.match(answer.text, '<Code>AccessDenied</Code>')
      else t.match((await signedRequest(scene.url, keys, { method: 'GET', path: wanted.path })).body, /^(source|part)$/)
    }),
  )
  await Promise.all(cases)
})
