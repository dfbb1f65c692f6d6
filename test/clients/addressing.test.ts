import { createServer, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { GetObjectCommand, S3 } from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t, { type Test } from 'tap'
import type { ProxyOptions } from '../../src/server/proxy-options.js'
import { startInProcess } from '../support/server/in-process.js'
import { listen } from '../support/server/listen.js'
import { presign, sendAsIs, signedRequest } from '../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const DOMAIN = 's3.dealgate.test'
const BUCKETS = ['photos', 'my.dotted.bucket']

function start(t: Test, options: Partial<ProxyOptions> = {}) {
  return startInProcess(t, 'full', { identities: [keys], domains: [DOMAIN, 'localhost'], ...options })
}

/** A client that finds every host at 127.0.0.1. */
function clientOf(t: Test, endpoint: string): S3 {
  const lookup = (_: string, options: { all?: boolean }, found: Parameters<LookupFunction>[2]) =>
    options.all ? found(null, [{ address: '127.0.0.1', family: 4 }]) : found(null, '127.0.0.1', 4)
  const client = new S3({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: false,
    credentials: keys,
    requestHandler: { httpAgent: new HttpAgent({ lookup }) },
  })
  t.teardown(() => client.destroy())
  return client
}

const portOf = (endpoint: string) => new URL(endpoint).port

t.test('SDK v3 with forcePathStyle false', async (t) => {
  const { endpoint } = await start(t)
  const s3 = clientOf(t, `http://${DOMAIN}:${portOf(endpoint)}`)
  for (const Bucket of BUCKETS) {
    await s3.createBucket({ Bucket })
    await s3.headBucket({ Bucket })
    for (const Key of ['a b/ü+%.txt', '-/live', Bucket]) {
      await s3.putObject({ Bucket, Key, Body: Key })
      const { Body } = await s3.getObject({ Bucket, Key })
      t.equal(await Body?.transformToString(), Key)
      const link = new URL(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key })))
      // The SDK itself keeps names with dots, which no wildcard certificate covers, in the path.
      t.equal(link.hostname, Bucket.includes('.') ? DOMAIN : `${Bucket}.${DOMAIN}`)
      const follow = (host: string) => sendAsIs(endpoint, { method: 'GET' }, link.pathname + link.search, { host })
      t.equal((await follow(link.host)).body, Key)
      t.equal((await follow(`other.${DOMAIN}:${link.port}`)).code, 'SignatureDoesNotMatch')
    }
    t.equal((await s3.listObjectsV2({ Bucket })).KeyCount, 3)
  }
})
/** A reverse proxy: says what it was asked for, and asks for another host itself. */
async function reverseProxy(t: Test, target: string, headers: (asked: IncomingMessage) => Record<string, string>) {
  const server = createServer((asked, answer) => {
    const { hostname, port } = new URL(target)
    const onward = httpRequest(
      { hostname, port, method: asked.method, path: asked.url, headers: { ...asked.headers, ...headers(asked) } },
      (response) => {
        answer.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(answer)
      },
    )
    asked.pipe(onward)
  })
  return listen(server, t)
}

t.test('behind a reverse proxy that changes Host', async (t) => {
  const told = (asked: IncomingMessage) => ({
    host: 'internal:9000',
    'x-forwarded-host': asked.headers.host ?? '',
    'x-forwarded-proto': 'https',
  })
  const trusting = await start(t, { trustForwardedHost: true })
  const front = await reverseProxy(t, trusting.endpoint, told)
  const s3 = clientOf(t, `http://${DOMAIN}:${portOf(front)}`)
  const Bucket = 'photos'
  await s3.createBucket({ Bucket })
  const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'k' })
  const { ETag } = await s3.uploadPart({ Bucket, Key: 'k', UploadId, PartNumber: 1, Body: 'part' })
  const { Location } = await s3.completeMultipartUpload({
    Bucket,
    Key: 'k',
    UploadId,
    MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] },
  })
  t.equal(Location, `https://photos.${DOMAIN}:${portOf(front)}/k`)

  // A link that was made for the inner host, which names the service, is none for a bucket's host, where its path would
  // mean another object.
  t.equal(
    (await signedRequest(trusting.endpoint, keys, { method: 'PUT', path: '/photos/photos/k', body: 'another' })).status,
    200,
  )
  const inner = await presign(trusting.endpoint, keys, { method: 'GET', path: '/photos/k', host: 'internal:9000' })
  t.equal((await sendAsIs(trusting.endpoint, { method: 'GET' }, inner.target, inner.headers)).body, 'part')
  const through = await sendAsIs(front, { method: 'GET' }, inner.target, { host: 'somewhere.example' })
  t.equal(through.body, 'part', 'the same object, by the host that was received')
  const shifted = await sendAsIs(front, { method: 'GET' }, inner.target, { host: `photos.${DOMAIN}` })
  t.equal(shifted.code, 'SignatureDoesNotMatch')

  const plain = await start(t)
  const wary = await reverseProxy(t, plain.endpoint, told)
  t.equal(
    (await signedRequest(wary, keys, { method: 'PUT', path: '/photos' })).code,
    'SignatureDoesNotMatch',
    'not trusted',
  )
  const claimed = { method: 'PUT', path: '/photos', headers: { 'x-forwarded-host': `other.${DOMAIN}` } }
  t.equal((await signedRequest(plain.endpoint, keys, claimed)).headers.location, '/photos')
})
