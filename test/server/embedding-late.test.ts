import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { PassThrough, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import { CreateMultipartUploadCommand, S3Client, UploadPartCommand } from '@aws-sdk/client-s3'
import express, { type RequestHandler } from 'express'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/common/log.js'
import { createProxy } from '../../src/server/create-proxy.js'
import { startServices } from '../../src/services/index.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Between } from '../support/gateway/between.js'
import { listen } from '../support/server/listen.js'
import { presign, signedRequest, type Wanted } from '../support/sign/signed-request.js'

/**
 * CompleteMultipartUpload and CopyObject that take long, behind middleware that gathers what is written before it sends
 * anything.
 */

// It brings no types along.
const compression = createRequire(import.meta.url)('compression') as () => RequestHandler

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const Bucket = 'bucket'
/** How long a test waits for white space before it lets the gateway go on, ms. */
const PATIENCE_MS = 45_000

const decoders: Record<string, () => Transform> = {
  identity: () => new PassThrough(),
  gzip: createGunzip,
  br: createBrotliDecompress,
}

/**
 * An endpoint behind compression() over a gateway whose uploads to keys that begin with `slow` wait until they are let
 * go.
 */
async function started(t: Test) {
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
  const s3 = new S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials: keys })
  t.teardown(() => s3.destroy())
  t.equal((await signedRequest(url, keys, { method: 'PUT', path: `/${Bucket}` })).status, 200)
  t.equal((await signedRequest(url, keys, { method: 'PUT', path: `/${Bucket}/source`, body: 'source' })).status, 200)
  return { url, s3, letGo: (key: string) => waiting.get(key)?.() }
}

const REFUSAL = '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'

type Scene = Awaited<ReturnType<typeof started>>

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
  const { UploadId = '' } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  const part = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'part' }))
  const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.ETag}</ETag></Part></CompleteMultipartUpload>`
  return { method: 'POST', path: `/${Bucket}/${Key}`, query: { uploadId: UploadId }, body }
}

const copying = (Key: string): Wanted => ({
  method: 'PUT',
  path: `/${Bucket}/${Key}`,
  headers: { 'x-amz-copy-source': `/${Bucket}/source` },
})

t.test('white space comes in time behind compression(), and the document after it', async (t) => {
  const scene = await started(t)
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
