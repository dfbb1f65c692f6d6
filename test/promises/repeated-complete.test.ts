import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/common/log.js'
import { openState } from '../../src/state/open-state.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Between } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { startInProcess } from '../support/server/in-process.js'
import { modes } from '../support/server/modes.js'
import { until } from '../support/waiting.js'

/**
 * Clients repeat CompleteMultipartUpload after 503. If the first call took effect and another write has replaced the
 * object since, the repeated call answers as the first one would have, and writes nothing.
 */

const Bucket = 'repeated'
const unavailable = { name: /ServiceUnavailable|SlowDown/ }

for (const mode of modes)
  t.test(`${mode}: a repeated Complete does not undo a later write`, async (t) => {
    const server = await startInProcess(t, mode)
    const { s3, gateway } = server
    await s3.send(new CreateBucketCommand({ Bucket }))
    const between = await Between.start(t, gateway)
    const throughBetween = { gateway: { url: between.url, account: gateway.account } }
    await server.restart(throughBetween)

    const begin = async (Key: string, condition: { IfNoneMatch?: '*' } = {}) => {
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
      const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'upload' }))
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
      return () => s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload, ...condition }))
    }
    const written = (key: string) =>
      between.requests.filter(({ method, path }) => method === 'PUT' && path.endsWith(`/upload/${Bucket}/${key}`))
    /** The gateway stores the object, and every answer to the upload is lost. */
    const loseAnswer = async (Key: string, complete: () => Promise<unknown>) => {
      between.fate = ({ method, path }) => (method === 'PUT' && path.endsWith(`/${Key}`) ? 'cut-after' : 'pass')
      await t.rejects(complete(), unavailable, `${Key}: the outcome is unknown`)
      between.fate = () => 'pass'
    }
    const persist = (send: () => Promise<unknown>) =>
      until('the later write is acknowledged', () =>
        send().then(
          () => true,
          () => false,
        ),
      )
    const get = async (Key: string) => (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString()

    for (const earlier of ['nothing', 'an object'])
      for (const restarts of [false, true]) {
        const Key = `${earlier.replace(' ', '-')}-${restarts}`
        if (earlier === 'an object') await s3.send(new PutObjectCommand({ Bucket, Key, Body: 'an older object' }))
        const complete = await begin(Key)
        await loseAnswer(Key, complete)
        await persist(() => s3.send(new PutObjectCommand({ Bucket, Key, Body: 'the later object' })))
        const before = written(Key).length
        if (restarts) await server.restart(throughBetween)
        const answers = await Promise.all([complete(), complete()])
        for (const { ETag } of answers) t.equal(ETag, '"d3dcdee8d91e1d9bb0a489d109e77386-1"', Key)
        t.equal(written(Key).length, before, 'nothing was sent to the gateway')
        t.equal(await get(Key), 'the later object')
      }

    const removed = 'removed'
    await s3.send(new PutObjectCommand({ Bucket, Key: removed, Body: 'an older object' }))
    const complete = await begin(removed)
    await loseAnswer(removed, complete)
    await persist(() => s3.send(new DeleteObjectCommand({ Bucket, Key: removed })))
    await complete()
    await t.rejects(get(removed), { name: 'NoSuchKey' }, 'a removal is not undone either')

    const refused = await begin('refused')
    between.fate = ({ method, path }) =>
      method === 'PUT' && path.endsWith('/refused') ? { status: 403, body: '' } : 'pass'
    await t.rejects(refused(), { name: 'AccessDenied' })
    between.fate = () => 'pass'
    await s3.send(new PutObjectCommand({ Bucket, Key: 'refused', Body: 'the later object' }))
    await refused()
    t.equal(await get('refused'), 'upload', 'what was refused is stored when it is repeated')

    const conditional = await begin('conditional', { IfNoneMatch: '*' })
    await s3.send(new PutObjectCommand({ Bucket, Key: 'conditional', Body: 'an older object' }))
    await t.rejects(conditional(), { name: 'PreconditionFailed' })
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'conditional' }))
    await conditional()
    t.equal(await get('conditional'), 'upload', 'a failed condition is no attempt')

    await server.restart({ ...throughBetween, limits: { keyWaitMs: 100 } })
    const busy = await begin('busy')
    const held = written('busy').length
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    between.fate = async ({ method, path }): Promise<'pass'> => {
      if (method === 'PUT' && path.endsWith('/busy')) await released
      return 'pass'
    }
    const rival = s3.send(new PutObjectCommand({ Bucket, Key: 'busy', Body: 'the later object' }))
    await until('the other write is at the gateway', () => written('busy').length > held)
    await t.rejects(busy(), { name: 'SlowDown' }, 'another write has the key')
    release()
    await rival
    between.fate = () => 'pass'
    await busy()
    t.equal(await get('busy'), 'upload', 'a call that never had the key is no attempt')
  })

for (const mode of modes)
  t.test(`${mode}: a Complete whose connection was refused is no attempt`, async (t) => {
    const server = await startInProcess(t, mode)
    const { s3, gateway } = server
    await s3.send(new CreateBucketCommand({ Bucket }))
    const between = await Between.start(t, gateway)
    let refusing = false
    const state = await openState({ data: temporaryFolder(t), log: createLogger({ level: 'silent' }) })
    t.teardown(() => state.close())
    const attempt: typeof state.uploads.attempt = async (...args) => {
      await state.uploads.attempt(...args)
      if (!refusing) return
      refusing = false
      await between.refuse()
    }
    const uploads = new Proxy(state.uploads, {
      get(of, name) {
        if (name === 'attempt') return attempt
        const member = Reflect.get(of, name)
        return typeof member === 'function' ? member.bind(of) : member
      },
    })
    await server.restart({ gateway: { url: between.url, account: gateway.account }, state: { ...state, uploads } })
    for (const later of ['a removal', 'an object']) {
      const Key = later.replace(' ', '-')
      await s3.send(new PutObjectCommand({ Bucket, Key, Body: 'an older object' }))
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
      const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'upload' }))
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] }
      const complete = () => s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }))
      refusing = true
      await t.rejects(complete(), unavailable)
      await between.accept()
      await (later === 'a removal'
        ? s3.send(new DeleteObjectCommand({ Bucket, Key }))
        : s3.send(new PutObjectCommand({ Bucket, Key, Body: 'the later object' })))
      await complete()
      const stored = await s3.send(new GetObjectCommand({ Bucket, Key }))
      t.equal(await stored.Body?.transformToString(), 'upload', `${later}: what reached no gateway is stored now`)
    }
  })

t.test('of two uploads with `If-None-Match: *`, one is completed, and each repeated call tells which', async (t) => {
  for (const mode of modes) {
    const server = await startInProcess(t, mode)
    const { s3, gateway } = server
    await s3.send(new CreateBucketCommand({ Bucket }))
    const between = await Between.start(t, gateway)
    await server.restart({ gateway: { url: between.url, account: gateway.account } })
    const Key = 'created'
    const begin = async (Body: string) => {
      const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
      const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body }))
      const upload = { Bucket, Key, UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] }, IfNoneMatch: '*' }
      return () => s3.send(new CompleteMultipartUploadCommand(upload))
    }
    const [one, two] = await Promise.all([begin('one'), begin('two')])
    between.fate = ({ method, path }) => (method === 'PUT' && path.endsWith(`/${Key}`) ? 'cut-after' : 'pass')
    await t.rejects(one(), unavailable, 'its outcome is unknown')
    between.fate = () => 'pass'
    const rival = await until('the key is free', () =>
      two().then(
        () => 'completed',
        ({ name }: Error) => (name === 'PreconditionFailed' ? name : undefined),
      ),
    )
    t.equal(rival, 'PreconditionFailed', mode)
    const [first, again] = await Promise.all([one(), one()])
    t.match(first.ETag, /-1"$/, 'the one that took effect is answered as the first call would have been')
    t.equal(again.ETag, first.ETag)
    await t.rejects(two(), { name: 'PreconditionFailed' })
    const stored = await s3.send(new GetObjectCommand({ Bucket, Key }))
    t.same([await stored.Body?.transformToString(), stored.ETag], ['one', first.ETag])
    await s3.send(new DeleteObjectCommand({ Bucket, Key }))
    await two()
    const created = await s3.send(new GetObjectCommand({ Bucket, Key }))
    t.equal(await created.Body?.transformToString(), 'two', 'a failed condition was no attempt')
  }
})

t.test('a Complete that the write of another program has overtaken is no attempt', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3, gateway } = server
  await s3.send(new CreateBucketCommand({ Bucket }))
  const between = await Between.start(t, gateway)
  await server.restart({ gateway: { url: between.url, account: gateway.account } })
  const other = new GatewayUser(gateway)
  await other.login()
  const Key = 'overtaken'
  const older = { Bucket, Key, Body: 'an older object' }
  const before = await s3.send(new PutObjectCommand(older))
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'upload' }))
  const upload = { Bucket, Key, UploadId, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] }, IfMatch: before.ETag }
  const complete = () => s3.send(new CompleteMultipartUploadCommand(upload))
  let isFirst = true
  between.fate = async ({ method, path }) => {
    if (isFirst && method === 'PUT' && path.endsWith(`/${Key}`)) {
      isFirst = false
      await other.put(Bucket, Key, Buffer.from('another object'))
    }
    return 'pass' as const
  }
  await t.rejects(complete(), { name: 'PreconditionFailed' })
  t.notOk(isFirst, 'the other program wrote while the bytes were on their way')
  await s3.send(new PutObjectCommand(older))
  await complete()
  const stored = await s3.send(new GetObjectCommand({ Bucket, Key }))
  t.equal(await stored.Body?.transformToString(), 'upload', 'what the gateway had refused is stored now')
})

t.test('a Complete that was killed before its last bytes is no attempt', async (t) => {
  const services = await startGateway(t, 'full')
  const Key = 'killed'
  const { url, accessKey, secretKey } = services
  const slow = await stalling(t, url, `/upload/${Bucket}/${Key}`)
  const data = temporaryFolder(t)
  const args = ['--gateway-timeout-seconds', '60']
  const first = await startDealgate(t, {
    data,
    args,
    gateway: { url: slow.url, accessKey, secretKey },
  })
  let s3 = client(t, first)
  await s3.send(new CreateBucketCommand({ Bucket }))
  const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
  const Body = Buffer.alloc(16 * 2 ** 20, 'upload')
  const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body }))
  const complete = new CompleteMultipartUploadCommand({
    Bucket,
    Key,
    UploadId,
    MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] },
  })
  const lost = s3.send(complete).catch((error: Error) => error)
  await until('the body is on its way', () => slow.stalled > 0)
  await first.kill9()
  t.ok((await lost) instanceof Error)
  const second = await startDealgate(t, { data, args, gateway: services })
  s3 = client(t, second)
  await until('the later write is acknowledged', () =>
    s3.send(new PutObjectCommand({ Bucket, Key, Body: 'the later object' })).then(
      () => true,
      () => false,
    ),
  )
  await s3.send(complete)
  const stored = await (await s3.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToByteArray()
  t.equal(stored?.length, Body.length, 'the repeated call stores the upload')
})

function client(t: Test, { endpoint, accessKey, secretKey }: Dealgate): S3Client {
  const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey }
  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials, maxAttempts: 1 })
  t.teardown(() => s3.destroy())
  return s3
}

interface Stalling {
  readonly url: string
  /** Connections that have begun a request to the path. */
  readonly stalled: number
}

/** A relay that reads no more of a connection once it has begun a PUT to the path. */
async function stalling(t: Test, target: string, path: string): Promise<Stalling> {
  const { hostname, port } = new URL(target)
  let stalled = 0
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const onward = connect(Number(port), hostname)
    for (const each of [socket, onward]) {
      sockets.add(each)
      each.on('error', () => {})
      each.on('close', () => {
        socket.destroy()
        onward.destroy()
      })
    }
    onward.pipe(socket)
    socket.on('data', (chunk) => {
      if (chunk.includes('PUT ') && chunk.includes(path)) {
        stalled++
        socket.pause()
      } else onward.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get stalled() {
      return stalled
    },
  }
}
