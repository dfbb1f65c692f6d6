import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { headerEnd, openHeader } from '../../../src/objects/encryption/age-header.js'
import { bytes, MiB, md5 } from '../../support/content/content.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { bodyOf, sdkFor } from '../../support/programs/sdk.js'
import { runCli } from '../../support/server/cli.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { startInProcess } from '../../support/server/in-process.js'
import { ask, completed } from '../../support/server/many-deaths.js'
import { modes } from '../../support/server/modes.js'
import { signedCall } from '../../support/sign/signed-request.js'

const CHUNK = 64 * 1024
const SSE = { ServerSideEncryption: 'AES256' } as const
const Bucket = 'secret'

const OBJECTS = 60
const DEATHS = process.env.DEALGATE_STRESS_ROUNDS === undefined ? 5 : 20

const newestOf = (keys: string) =>
  readFileSync(keys, 'utf8')
    .match(/^AGE-SECRET-KEY-\S+/gm)
    ?.at(-1) ?? ''

/** A running server looks at the file of keys once a second. */
async function rotate(data: string): Promise<void> {
  const { code, stderr } = await runCli(['encryption', 'rotate', '--data', data])
  if (code !== 0) throw new Error(stderr)
  await sleep(1100)
}

for (const mode of modes) {
  t.test(`${mode}: headers for the keys of today, and the same content`, async (t) => {
    const server = await startInProcess(t, mode)
    const { s3 } = server
    const keys = join(server.data, 'encryption.keys')
    const user = new GatewayUser(server.gateway)
    await user.login()
    await s3.createBucket({ Bucket })
    const sizes = [0, 1000, CHUNK, 5 * CHUNK + 3]
    const told = {
      Metadata: { a: 'b' },
      ContentType: 'text/x-own',
      ChecksumAlgorithm: 'SHA256',
      Tagging: 'c=d',
    } as const
    for (const size of sizes)
      await s3.putObject({ Bucket, Key: `of ${size}`, Body: bytes('of', size), ...told, ...SSE })
    const parts = [bytes('one', 5 * MiB + 1), bytes('two', 10)]
    const { UploadId } = await s3.createMultipartUpload({ Bucket, Key: 'parts', ...SSE })
    const Parts = []
    for (const [i, Body] of parts.entries()) {
      const { ETag } = await s3.uploadPart({ Bucket, Key: 'parts', UploadId, PartNumber: i + 1, Body })
      Parts.push({ PartNumber: i + 1, ETag })
    }
    await s3.completeMultipartUpload({ Bucket, Key: 'parts', UploadId, MultipartUpload: { Parts } })
    await s3.putObject({ Bucket, Key: 'plain', Body: 'plain' })
    const customer = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: bytes('c', 32).toString('base64') }
    await s3.putObject({ Bucket, Key: 'customer', Body: 'of a client', ...customer })

    const rewrap = async (body = {}) => {
      const identity = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
      const asked = { body, headers: { prefer: 'wait=300' } }
      const answer = await signedCall(server.endpoint, identity, 'POST', `/${Bucket}?x-encryption=&format=json`, asked)
      t.equal(answer.status, 200, answer.body)
      return JSON.parse(answer.body)
    }
    const names = [...sizes.map((size) => `of ${size}`), 'parts']
    const count = async (query = '') => {
      const identity = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }
      const target = `/${Bucket}?format=json&x-encryption=${query}`
      const { status, body } = await signedCall(server.endpoint, identity, 'GET', target)
      t.equal(status, 200, body)
      return JSON.parse(body)
    }
    const sealed = [...sizes, parts[0]?.length ?? 0, 10, 11].reduce((sum, size) => sum + size)
    t.same(await count(), {
      ...{ Bucket, Encrypted: { Objects: names.length + 1, Bytes: sealed } },
      ...{ NotEncrypted: { Objects: 1, Bytes: 5 }, Plain: [{ Key: 'plain', Size: 5 }], IsTruncated: false },
    })
    const nothing = { Objects: 0, Bytes: 0 }
    const asked = { Encrypted: nothing, NotEncrypted: nothing, KeyFound: false, Plain: [], Default: undefined }
    t.match(await count('&max-objects=0&key-id=missing'), asked)
    const counted = []
    let token = ''
    do {
      const page = await count(`&max-objects=3${token}`)
      counted.push([page.Encrypted.Objects, page.NotEncrypted.Objects])
      token = page.IsTruncated ? `&continuation-token=${encodeURIComponent(page.NextContinuationToken)}` : ''
    } while (token !== '')
    t.same(counted, [
      [3, 0],
      [3, 0],
      [0, 1],
    ])

    const stored = async (key: string) => {
      const { body } = await user.get(Bucket, encodeURIComponent(key))
      const end = headerEnd(body) ?? 0
      return { header: body.subarray(0, end), payload: body.subarray(end) }
    }
    const before = new Map<string, Awaited<ReturnType<typeof stored>>>()
    for (const name of names) before.set(name, await stored(name))
    const others = { Plain: 1, Skipped: 1, EarlierDeals: [] }
    t.match(await rewrap(), { Rewrapped: 0, Current: names.length, ...others })
    for (const name of names) t.same(await stored(name), before.get(name), 'nothing is written')

    const first = newestOf(keys)
    await rotate(server.data)
    t.match(await rewrap({ Prefix: 'of 1' }), { Rewrapped: 1, Current: 0, Plain: 0, Skipped: 0 })
    const done = await rewrap()
    t.match(done, { Rewrapped: names.length - 1, Current: 1, ...others })
    t.match(done.SkippedObjects, [{ Key: 'customer', Reason: /key of a client/ }])
    for (const name of names) {
      const { header, payload } = await stored(name)
      t.ok(
        payload.equals((before.get(name) as { payload: Buffer }).payload),
        `${name}: the payload is not encrypted anew`,
      )
      t.ok(Buffer.isBuffer(await openHeader(header, [newestOf(keys)])), 'the newest key opens it')
      t.equal(await openHeader(header, [first]), 'no key', 'and the earlier one does not')
    }
    const check = async () => {
      for (const size of sizes) {
        const content = bytes('of', size)
        const head = await s3.headObject({ Bucket, Key: `of ${size}`, ChecksumMode: 'ENABLED' })
        t.match(head, { ETag: `"${md5(content)}"`, ContentLength: size, Metadata: { a: 'b' }, TagCount: 1, ...SSE })
        t.match(head, { ContentType: 'text/x-own', ChecksumSHA256: /=$/ })
        t.ok((await bodyOf(s3, { Bucket, Key: `of ${size}` })).equals(content))
      }
      t.ok((await bodyOf(s3, { Bucket, Key: 'parts' })).equals(Buffer.concat(parts)))
      t.ok((await bodyOf(s3, { Bucket, Key: 'parts', PartNumber: 2 })).equals(parts[1] as Buffer))
      t.equal((await bodyOf(s3, { Bucket, Key: 'plain' })).toString(), 'plain')
      t.equal((await bodyOf(s3, { Bucket, Key: 'customer', ...customer })).toString(), 'of a client')
    }
    await check()
    t.match(await rewrap(), { Rewrapped: 0, Current: names.length, ...others })
    await server.restart()
    await check()
  })
}

t.test('killed again and again, a job goes on, and no write is lost', async (t) => {
  const server = await startDealgate(t)
  // It has another port after each start.
  const s3 = () => sdkFor(t, server)
  await s3().createBucket({ Bucket })
  const keys = join(server.data, 'encryption.keys')
  const contents = new Map<string, Buffer>()
  for (let i = 0; i < OBJECTS; i++) {
    contents.set(`k${i}`, bytes(`${i}`, i * 500))
    await s3().putObject({ Bucket, Key: `k${i}`, Body: contents.get(`k${i}`), ...SSE })
  }
  let jobs = 0
  const place = () =>
    ask(server, 'POST', `/${Bucket}?x-encryption=`, {
      json: {},
      headers: { 'x-amz-client-token': `job-${jobs}`, prefer: 'wait=0' },
    })
  const begin = async () => {
    await rotate(server.data)
    jobs++
    await place()
  }
  await begin()
  for (let death = 0; death < DEATHS; death++) {
    const Key = `k${death}`
    const Body = bytes(`written ${death}`, 50_000)
    // What a client writes meanwhile is not replaced by what was there before.
    const put = s3()
      .putObject({ Bucket, Key, Body, ...SSE })
      .then(
        () => true,
        () => false,
      )
    await sleep(randomInt(5, 400))
    await server.kill9()
    const stored = await put
    await server.start()
    if (stored) contents.set(Key, Body)
    else {
      await s3().putObject({ Bucket, Key, Body, ...SSE })
      contents.set(Key, Body)
    }
    if ((await place()).status === 200) await begin()
  }
  const result = await completed<Record<string, number>>('the job', place)
  t.equal(result.Skipped, 0)
  t.equal((result.Rewrapped ?? 0) + (result.Current ?? 0), OBJECTS, JSON.stringify(result))
  for (const [Key, content] of contents) if (!(await bodyOf(s3(), { Bucket, Key })).equals(content)) t.fail(Key)
  // A write right after a rotation may have the key before.
  t.equal((await runCli(['encryption', 'rewrap', Bucket, '--data', server.data])).code, 0)
  const { code, stdout, stderr } = await runCli(['encryption', 'rewrap', Bucket, '--data', server.data])
  t.equal(code, 0, stderr)
  t.match(stdout, `0 objects have new headers, ${OBJECTS} had such headers before`)
  await rotate(server.data)
  const again = await runCli(['encryption', 'rewrap', Bucket, '--prefix', 'k1', '--data', server.data])
  t.match(again.stdout, /^\d+ objects have new headers, 0 had/)
  t.match(newestOf(keys), /^AGE-SECRET-KEY-/)
  const refused = await runCli(['encryption', 'rewrap', 'absent', '--data', server.data])
  t.match([refused.code, refused.stderr], [1, /bucket does not exist/])
})
