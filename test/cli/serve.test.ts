import { once } from 'node:events'
import { statSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import t from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { startDealgate } from '../support/server/dealgate.js'
import { presigned } from '../support/sign/send.js'

function clientOf({ endpoint, region, accessKey, secretKey }: Endpoint): S3Client {
  return new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId: accessKey, secretAccessKey: secretKey },
  })
}

function get(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { agent: false }, (response) => resolve(response.resume()))
      .on('error', reject)
      .end()
  })
}

t.test('a first start makes a key pair, later ones keep it and the objects, also after kill -9', async (t) => {
  const data = join(t.testdir({}), 'data')
  const first = await startDealgate(t, { data })
  t.match(first.endpoint, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.equal((await get(`${first.endpoint}/-/live`)).statusCode, 200)
  t.equal((await get(`${first.endpoint}/-/ready`)).statusCode, 200)
  t.equal(statSync(join(data, 'keys.json')).mode & 0o777, 0o600)

  const client = clientOf(first)
  await client.send(new CreateBucketCommand({ Bucket: 'kept' }))
  await client.send(new PutObjectCommand({ Bucket: 'kept', Key: 'a', Body: 'bytes' }))
  client.destroy()
  await first.stop('SIGKILL')

  const second = await startDealgate(t, { data })
  t.equal(second.accessKey, first.accessKey)
  t.equal(second.secretKey, first.secretKey)
  const again = clientOf(second)
  const { Body } = await again.send(new GetObjectCommand({ Bucket: 'kept', Key: 'a' }))
  t.equal(await Body?.transformToString(), 'bytes')
  again.destroy()
  const { code, stderr } = await second.stop()
  t.equal(code, 0)
  const line = stderr
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text))
    .find((entry) => entry.access?.operation === 'GetObject')
  t.match(
    line,
    { access: { bucket: 'kept', status: 200, bytesOut: 5, requestId: String } },
    'one line of JSON a request',
  )
  t.notMatch(stderr, second.secretKey)
})

t.test('SIGTERM lets a running upload end', async (t) => {
  const data = join(t.testdir({}), 'data')
  const running = await startDealgate(t, { data })
  const client = clientOf(running)
  await client.send(new CreateBucketCommand({ Bucket: 'uploads' }))
  client.destroy()
  const half = Buffer.alloc(1024 * 1024, 'x')
  const upload = httpRequest(presigned(running, 'PUT', '/uploads/slow'), {
    method: 'PUT',
    agent: false,
    headers: { 'content-length': 2 * half.length, expect: '100-continue' },
  })
  const answered = new Promise<IncomingMessage>((resolve, reject) => upload.on('response', resolve).on('error', reject))
  const wanted = new Promise<void>((resolve) => upload.once('continue', resolve))
  upload.flushHeaders()
  await wanted
  upload.write(half)
  const stopped = running.stop('SIGTERM')
  await untilRefused(running.endpoint)
  upload.end(half)
  t.equal((await answered).resume().statusCode, 200)
  t.match(await stopped, { code: 0, signal: null })

  const again = await startDealgate(t, { data })
  const reader = clientOf(again)
  const { ContentLength, Body } = await reader.send(new GetObjectCommand({ Bucket: 'uploads', Key: 'slow' }))
  t.equal(ContentLength, 2 * half.length)
  t.ok(Buffer.from((await Body?.transformToByteArray()) ?? []).equals(Buffer.concat([half, half])))
  reader.destroy()
})

t.test('a second signal ends the process at once, whatever still runs', async (t) => {
  const data = join(t.testdir({}), 'data')
  const running = await startDealgate(t, { data })
  const client = clientOf(running)
  await client.send(new CreateBucketCommand({ Bucket: 'uploads' }))
  client.destroy()
  const headers = { 'content-length': 10, expect: '100-continue' }
  const hanging = httpRequest(presigned(running, 'PUT', '/uploads/never'), { method: 'PUT', agent: false, headers })
  hanging.on('error', () => {})
  hanging.flushHeaders()
  // The server has begun with it: a connection that is not accepted yet would not keep it from ending.
  await once(hanging, 'continue')
  hanging.write('half')
  process.kill(running.pid, 'SIGTERM')
  await untilRefused(running.endpoint)
  // Two signals within half a second count as one.
  await new Promise((resolve) => setTimeout(resolve, 600))
  t.match(await running.stop('SIGTERM'), { code: 1, signal: null })
})

async function untilRefused(endpoint: string): Promise<void> {
  for (;;) {
    try {
      await get(`${endpoint}/-/live`)
    } catch {
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
