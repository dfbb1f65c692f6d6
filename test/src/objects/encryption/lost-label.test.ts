import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  AGE_MAGIC,
  makeHeader,
  newIdentity,
  placedHeader,
  recipientOf,
} from '../../../../src/objects/encryption/age-header.js'
import { bytes, md5 } from '../../../support/content/content.js'
import { startGateway } from '../../../support/gateway/embedded.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { Bucket, configure, inventoryRows, REPORTS, runNow } from '../../../support/plugins/inventory-scene.js'
import { sdkFor } from '../../../support/programs/sdk.js'
import { runCli } from '../../../support/server/cli.js'
import { type Dealgate, startDealgate } from '../../../support/server/dealgate.js'
import { send, targetOf } from '../../../support/sign/send.js'
import { signedCall } from '../../../support/sign/signed-request.js'

/** What is encrypted is never served as content, also where its record and its label at the gateway are lost. */

const CONTENT = bytes('secret', 200_000)
const AES256 = { 'x-amz-server-side-encryption': 'AES256' }

/** Stores bytes behind the server, as a program does that copies them without metadata. */
async function moved(other: GatewayUser, from: string, to: string): Promise<Buffer> {
  const { body: stored } = await other.get('bucket', from)
  await other.put('bucket', to, stored, {})
  return stored
}

const get = (server: Dealgate, key: string, headers = {}) =>
  send(server, { method: 'GET', target: targetOf('bucket', key), headers })
const head = (server: Dealgate, key: string) => send(server, { method: 'HEAD', target: targetOf('bucket', key) })
const put = (server: Dealgate, key: string, body: Buffer, headers = {}) =>
  send(server, { method: 'PUT', target: targetOf('bucket', key), body, headers })

t.test('before a gateway of others', { timeout: 300_000 }, async (t) => {
  const gateway = await startGateway(t, 'legacy')
  const server = await startDealgate(t, { mode: 'legacy', gateway })
  const other = new GatewayUser(gateway)
  await other.login()
  t.equal((await send(server, { method: 'PUT', target: '/bucket' })).status, 200)

  await t.test('it is opened at its own bucket and key', async (t) => {
    for (const [key, content] of [
      ['large', CONTENT],
      ['small', Buffer.from('small')],
      ['empty', Buffer.alloc(0)],
    ] as const) {
      t.equal((await put(server, key, content, AES256)).status, 200)
      const stored = await moved(other, key, key)
      t.equal(stored.toString('latin1', 0, AGE_MAGIC.length), AGE_MAGIC)
      const got = await get(server, key)
      t.match(got, { status: 200, headers: AES256 }, key)
      t.equal(md5(got.body), md5(content), key)
      t.match(await head(server, key), {
        status: 200,
        headers: { 'content-length': String(content.length), etag: /-/, ...AES256 },
      })
    }
    for (const [range, [first, last]] of Object.entries({
      'bytes=0-9': [0, 9],
      'bytes=100000-100009': [100_000, 100_009],
      'bytes=-10': [199_990, 199_999],
    })) {
      const part = await get(server, 'large', { range })
      t.equal(part.status, 206)
      t.same(part.body, CONTENT.subarray(first, (last ?? 0) + 1), range)
    }
    t.equal((await get(server, 'large', { range: 'bytes=200000-' })).status, 416, 'beyond the content')
    const copied = await put(server, 'copied', Buffer.alloc(0), { 'x-amz-copy-source': '/bucket/large' })
    t.equal(copied.status, 200)
    t.equal(md5((await get(server, 'copied')).body), md5(CONTENT))
  })

  await t.test('it is refused at another key, and without its key', async (t) => {
    await moved(other, 'large', 'elsewhere')
    for (const headers of [{}, { range: 'bytes=0-9' }, { range: 'bytes=100000-100009' }])
      t.match(await get(server, 'elsewhere', headers), { status: 403, code: 'AccessDenied' })
    const { header } = await makeHeader([await recipientOf(await newIdentity())], 'bucket\nforeign')
    await other.put('bucket', 'foreign', Buffer.concat([header, randomBytes(1000)]), {})
    t.match(await get(server, 'foreign'), { status: 403, code: 'AccessDenied', message: /no key that opens it/ })
    await other.put('bucket', 'cut', header.subarray(0, header.length - 20), {})
    const cut = await get(server, 'cut')
    t.ok(cut.status >= 400, `${cut.status} ${cut.code}`)
  })

  await t.test('with a key of a client', async (t) => {
    const key = randomBytes(32)
    const customer = {
      'x-amz-server-side-encryption-customer-algorithm': 'AES256',
      'x-amz-server-side-encryption-customer-key': key.toString('base64'),
      'x-amz-server-side-encryption-customer-key-md5': Buffer.from(md5(key), 'hex').toString('base64'),
    }
    t.equal((await put(server, 'own', CONTENT, customer)).status, 200)
    await moved(other, 'own', 'own')
    t.equal(md5((await get(server, 'own', customer)).body), md5(CONTENT))
    t.match(await get(server, 'own'), { status: 403 })
  })

  await t.test('what is no encrypted object stays content', async (t) => {
    const { body: stored } = await other.get('bucket', 'large')
    t.equal((await put(server, 'a-file', stored)).status, 200)
    t.same((await get(server, 'a-file')).body, stored, 'a client has stored it so')
    const plain = Buffer.concat([Buffer.from(`${AGE_MAGIC}-> X25519 abc\n`), randomBytes(1000)])
    const texts = { others: plain, bytes: bytes('plain', 100_000), short: Buffer.from(AGE_MAGIC) }
    for (const [name, body] of Object.entries(texts)) {
      await other.put('bucket', name, body, {})
      t.same((await get(server, name)).body, body, name)
      if (body.length > 500)
        t.same(
          (await get(server, name, { range: 'bytes=100-199' })).body,
          body.subarray(100, 200),
          `a range of ${name}`,
        )
    }
  })
})

t.test('operators find such objects, and label them again', { timeout: 300_000 }, async (t) => {
  const gateway = await startGateway(t, 'legacy')
  const server = await startDealgate(t, { mode: 'legacy', gateway, args: ['--inventory-interval-seconds', '0'] })
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const s3 = sdkFor(t, server)
  const other = new GatewayUser(gateway)
  await other.login()
  for (const name of [Bucket, REPORTS]) await s3.createBucket({ Bucket: name })
  for (const Key of ['kept', 'lost']) await s3.putObject({ Bucket, Key, Body: CONTENT, ServerSideEncryption: 'AES256' })
  await s3.putObject({ Bucket, Key: 'plain', Body: CONTENT })
  await other.put(Bucket, 'lost', (await other.get(Bucket, 'lost')).body, {})
  await other.put(Bucket, 'theirs', bytes('theirs', 1000), {})

  const labels = async () => {
    const { status, json } = await runNow(server.endpoint, 'labels', keys)
    t.equal(status, 200)
    const rows = await inventoryRows(s3, json.Manifest)
    return Object.fromEntries(rows.map((row) => [row.Key, [row['x-EncryptionLabel'], row.Size]]))
  }
  await configure(s3, 'labels', { fields: ['Size', 'x-EncryptionLabel'] })
  const size = String(CONTENT.length)
  const others = { kept: ['kept', size], plain: ['', size], theirs: ['', '1000'] }
  t.same(await labels(), { ...others, lost: ['lost', size] })

  const doctor = async () => {
    const to = ['--gateway-url', gateway.url, '--gateway-access-key', gateway.accessKey]
    const args = [...to, '--gateway-secret-key', gateway.secretKey]
    return (await runCli(['doctor', '--data', server.data, '--port', String(server.port), ...args])).stdout
  }
  t.match(await doctor(), /lost the label[^\n]*: source\/lost\./)

  const { status, body } = await signedCall(server.endpoint, keys, 'POST', `/${Bucket}?x-encryption=&format=json`, {
    headers: { prefer: 'wait=120' },
  })
  t.equal(status, 200, body)
  t.same(await labels(), { ...others, lost: ['kept', size] })
  t.notMatch(await doctor(), /lost the label/)
  const got = await s3.getObject({ Bucket, Key: 'lost' })
  t.equal(md5(Buffer.from((await got.Body?.transformToByteArray()) ?? [])), md5(CONTENT))
})

t.test('headers for a place', async (t: Test) => {
  const { header } = await makeHeader([await recipientOf(await newIdentity())], 'bucket\nkey')
  t.equal(placedHeader(Buffer.concat([header, randomBytes(100)])), header.length)
  t.equal(placedHeader(header.subarray(0, header.length - 5)), header.length - 5, 'cut')
  t.equal(placedHeader(Buffer.from(`${AGE_MAGIC}-> X25519 abc\nbody\n--- mac\n-> dealgate/object x\n`)), undefined)
})
