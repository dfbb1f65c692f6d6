import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { Between, type Passed } from '../support/gateway/between.js'
import { startGateway } from '../support/gateway/embedded.js'
import { GatewayUser } from '../support/gateway/gateway-user.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { modes } from '../support/server/modes.js'
import { until } from '../support/waiting.js'
import { Bucket, beginUpload, start, startWithState, unavailable, withMember } from './complete-scene.js'

/**
 * Clients repeat CompleteMultipartUpload after 503. If the first call took effect and another write has replaced the
 * object since, the repeated call answers as the first one would have, and writes nothing.
 */

/** Until a write is acknowledged. */
const persist = (send: () => Promise<unknown>) =>
  until('the later write is acknowledged', () =>
    send().then(
      () => true,
      () => false,
    ),
  )

for (const mode of modes)
  t.test(`${mode}: a repeated Complete does not undo a later write`, async (t) => {
    const { between, restart, put, remove, get, begin, loseAnswer } = await start(t, mode)
    const written = (key: string) =>
      between.requests.filter(({ method, path }) => method === 'PUT' && path.endsWith(`/upload/${Bucket}/${key}`))
    for (const earlier of ['nothing', 'an object'])
      for (const restarts of [false, true]) {
        const Key = `${earlier.replace(' ', '-')}-${restarts}`
        if (earlier === 'an object') await put(Key, 'an older object')
        const complete = await begin(Key)
        await loseAnswer(Key, complete)
        await persist(() => put(Key, 'the later object'))
        const before = written(Key).length
        if (restarts) await restart()
        const answers = await Promise.all([complete(), complete()])
        for (const { ETag } of answers) t.equal(ETag, '"d3dcdee8d91e1d9bb0a489d109e77386-1"', Key)
        t.equal(written(Key).length, before, 'nothing was sent to the gateway')
        t.equal(await get(Key), 'the later object')
      }

    const removed = 'removed'
    await put(removed, 'an older object')
    const complete = await begin(removed)
    await loseAnswer(removed, complete)
    await persist(() => remove(removed))
    await complete()
    await t.rejects(get(removed), { name: 'NoSuchKey' }, 'a removal is not undone either')

    const refused = await begin('refused')
    between.fate = ({ method, path }) =>
      method === 'PUT' && path.endsWith('/refused') ? { status: 403, body: '' } : 'pass'
    await t.rejects(refused(), { name: 'AccessDenied' })
    between.fate = () => 'pass'
    await put('refused', 'the later object')
    await refused()
    t.equal(await get('refused'), 'upload', 'what was refused is stored when it is repeated')

    await restart({ limits: { keyWaitMs: 100 } })
    const busy = await begin('busy')
    const held = written('busy').length
    let release = () => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    between.fate = async ({ method, path }): Promise<'pass'> => {
      if (method === 'PUT' && path.endsWith('/busy')) await released
      return 'pass'
    }
    const rival = put('busy', 'the later object')
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
    let refusing: (() => Promise<void>) | undefined
    const { between, begin, put, remove, get } = await startWithState(t, mode, ({ uploads }) => {
      const attempt: typeof uploads.attempt = async (...args) => {
        await uploads.attempt(...args)
        const refuse = refusing
        refusing = undefined
        await refuse?.()
      }
      return { uploads: withMember(uploads, 'attempt', attempt) }
    })
    for (const later of ['a removal', 'an object']) {
      const Key = later.replace(' ', '-')
      await put(Key, 'an older object')
      const complete = await begin(Key)
      refusing = () => between.refuse()
      await t.rejects(complete(), unavailable)
      await between.accept()
      await (later === 'a removal' ? remove(Key) : put(Key, 'the later object'))
      await complete()
      t.equal(await get(Key), 'upload', `${later}: what reached no gateway is stored now`)
    }
  })

t.test('of two uploads with `If-None-Match: *`, one is completed, and each repeated call tells which', async (t) => {
  for (const mode of modes) {
    const { s3, get, remove, begin, loseAnswer } = await start(t, mode)
    const Key = 'created'
    const one = await begin(Key, { IfNoneMatch: '*' }, 'one')
    const two = await begin(Key, { IfNoneMatch: '*' }, 'two')
    await loseAnswer(Key, one)
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
    t.equal((await s3.send(new GetObjectCommand({ Bucket, Key }))).ETag, first.ETag)
    t.equal(await get(Key), 'one')
    await remove(Key)
    await two()
    t.equal(await get(Key), 'two', 'a failed condition was no attempt')
  }
})

t.test('a Complete that the write of another program has overtaken is no attempt', async (t) => {
  const { gateway, between, put, get, begin } = await start(t, 'full')
  const other = new GatewayUser(gateway)
  await other.login()
  const Key = 'overtaken'
  const { ETag } = await put(Key, 'an older object')
  const complete = await begin(Key, { IfMatch: ETag })
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
  await put(Key, 'an older object')
  await complete()
  t.equal(await get(Key), 'upload', 'what the gateway had refused is stored now')
})

t.test('a Complete that was killed before its last bytes is no attempt', async (t) => {
  const services = await startGateway(t, 'full')
  const Key = 'killed'
  const slow = await Between.start(t, services)
  const isStalled = ({ method, path }: Pick<Passed, 'method' | 'path'>) =>
    method === 'PUT' && path.endsWith(`/upload/${Bucket}/${Key}`)
  slow.leavesUnread = isStalled
  const data = temporaryFolder(t)
  const args = ['--gateway-timeout-seconds', '60']
  const first = await startDealgate(t, { data, args, gateway: slow })
  const s3 = client(t, first)
  await s3.send(new CreateBucketCommand({ Bucket }))
  const Body = Buffer.alloc(16 * 2 ** 20, 'upload')
  const complete = await beginUpload(s3, Key, {}, Body)
  const lost = complete().catch((error: Error) => error)
  await until('the body is on its way', () => slow.requests.some(isStalled))
  await first.kill9()
  t.ok((await lost) instanceof Error)
  const later = client(t, await startDealgate(t, { data, args, gateway: services }))
  await persist(() => later.send(new PutObjectCommand({ Bucket, Key, Body: 'the later object' })))
  await complete(later)
  const stored = await (await later.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToByteArray()
  t.equal(stored?.length, Body.length, 'the repeated call stores the upload')
})

function client(t: Test, { endpoint, accessKey, secretKey }: Dealgate): S3Client {
  const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey }
  const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials, maxAttempts: 1 })
  t.teardown(() => s3.destroy())
  return s3
}
