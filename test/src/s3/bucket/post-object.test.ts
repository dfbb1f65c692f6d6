import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { S3 } from '@aws-sdk/client-s3'
import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t from 'tap'
import type { Identity } from '../../../../src/api/identity.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { modes } from '../../../support/server/modes.js'
import { signedRequest } from '../../../support/sign/signed-request.js'
import { signVersion2 } from '../../../support/sign/version-2.js'

const owner: Identity = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const writer: Identity = {
  accessKeyId: 'writer',
  secretAccessKey: 'writer-secret',
  rights: [{ bucket: 'box', prefix: 'in/', access: 'write' }],
}
const reader: Identity = {
  accessKeyId: 'reader',
  secretAccessKey: 'reader-secret',
  rights: [{ bucket: 'box', access: 'read' }],
}
// biome-ignore lint/suspicious/noTemplateCurlyInString: S3's variable, word for word
const FILENAME = '${filename}'

for (const mode of modes) {
  t.test(`${mode}: a form may do what its signer may do`, async (t) => {
    const { endpoint, data } = await startInProcess(t, mode, { identities: [owner, writer, reader] })
    const spools = () => readdirSync(join(data, 'spool'))
    await signedRequest(endpoint, owner, { method: 'PUT', path: '/box' })
    await signedRequest(endpoint, owner, { method: 'PUT', path: '/box/in/old', body: 'old' })
    const read = async (path: string) => (await signedRequest(endpoint, owner, { method: 'GET', path })).body

    const presign = async (by: Identity, Key: string, Fields: Record<string, string> = {}) => {
      const client = new S3({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: by })
      try {
        return await createPresignedPost(client, { Bucket: 'box', Key, Fields })
      } finally {
        client.destroy()
      }
    }
    const post = async (
      by: Identity,
      key: string,
      filename = 'f',
      headers: Record<string, string> = {},
      more: Record<string, string> = {},
    ) => {
      const { key: sent, ...others } = more
      const { url, fields } = await presign(by, key, others)
      const body = new FormData()
      for (const [name, value] of Object.entries({ ...fields, ...(sent && { key: sent }) })) body.append(name, value)
      body.append('file', new Blob(['by form']), filename)
      const answer = await fetch(url, { method: 'POST', body, headers })
      return [answer.status, /<Code>(\w+)</.exec(await answer.text())?.[1]]
    }
    t.same(await post(writer, 'in/new'), [204, undefined])
    t.equal(await read('/box/in/new'), 'by form')
    t.same(await post(writer, `in/${FILENAME}`, '../../out'), [204, undefined])
    t.equal(await read('/box/in/out'), 'by form', 'only the last element of a file name counts')
    t.same(await post(writer, 'out'), [403, 'AccessDenied'])
    t.same(await post(writer, 'in/../out'), [403, 'AccessDenied'])
    const byPrefix = (key: string) => post(owner, `in/${FILENAME}`, 'f', {}, { key })
    t.same(await byPrefix('in/k'), [204, undefined])
    t.same(await byPrefix('in/../out'), [403, 'AccessDenied'], 'a key that leaves the prefix if it is resolved')
    t.same(await post(reader, 'in/old'), [403, 'AccessDenied'])
    t.same(await post(writer, 'in/old', 'f', { 'if-none-match': '*' }), [412, 'PreconditionFailed'])
    const withField = (name: string, value: string) => post(writer, 'in/old', 'f', {}, { [name]: value })
    t.same(await withField('x-amz-expected-bucket-owner', '111122223333'), [403, 'AccessDenied'])
    for (const name of ['x-amz-copy-source', 'x-amz-metadata-directive', 'x-cloud-meta-a'])
      t.same(await withField(name, '/box/in/new'), [501, 'NotImplemented'], name)
    t.equal(await read('/box/in/old'), 'old')
    const listed = await signedRequest(endpoint, owner, { method: 'GET', path: '/box', query: { 'list-type': '2' } })
    t.match(listed.body, /<Key>in\/old</)
    t.notMatch(listed.body, /<Key>out</)

    await t.test('a connection that breaks leaves the old object, and no file behind', async (t) => {
      const { fields } = await presign(writer, 'in/old')
      const parts = Object.entries(fields).map(
        ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
      )
      const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
      const { hostname, port, host } = new URL(endpoint)
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      socket.write(
        `POST /box HTTP/1.1\r\nhost: ${host}\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 10000000\r\n\r\n${parts.join('')}${file}`,
      )
      socket.write(Buffer.alloc(1_000_000))
      for (let i = 0; spools().length === 0 && i < 6000; i++) await sleep(10)
      t.equal(spools().length, 1, 'the file goes to disk as it comes')
      socket.destroy()
      await once(socket, 'close')
      for (let i = 0; spools().length > 0 && i < 6000; i++) await sleep(10)
      t.same(spools(), [])
      t.equal(await read('/box/in/old'), 'old')
    })
  })
}

const DAY_MS = 86_400_000
const CRC64_OF_TEXT = 'rCixvM1b9Xc='

t.test('a form of version 2 is good for at most seven days', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full')
  await s3.createBucket({ Bucket: 'forms' })
  const post = (days: number, more: Record<string, string> = {}) => {
    const expiration = new Date(Date.now() + days * DAY_MS).toISOString()
    const conditions = [{ bucket: 'forms' }, ['starts-with', '$key', '']]
    const policy = Buffer.from(JSON.stringify({ expiration, conditions })).toString('base64')
    const form = new FormData()
    form.set('key', 'a')
    form.set('AWSAccessKeyId', 'test-key')
    form.set('policy', policy)
    form.set('signature', signVersion2('test-secret', policy))
    for (const [name, value] of Object.entries(more)) form.set(name, value)
    form.set('file', new Blob(['text']))
    return fetch(`${endpoint}/forms`, { method: 'POST', body: form })
  }
  const stored = await post(6.9)
  t.equal(stored.status, 204)
  t.equal(stored.headers.get('x-amz-checksum-crc64nvme'), CRC64_OF_TEXT, 'that of a form without a checksum')
  const refused = await post(7.1)
  t.equal(refused.status, 403)
  t.match(await refused.text(), /within seven days/)

  // Of the fields that the policy does not name, a checksum alone is accepted, and compared.
  const statusWith = async (name: string, value: string) => (await post(1, { [name]: value })).status
  const sum = createHash('sha256').update('text').digest('base64')
  t.equal(await statusWith('x-amz-checksum-sha256', sum), 204)
  t.equal(await statusWith('x-amz-checksum-sha256', createHash('sha256').update('test').digest('base64')), 400)
  t.equal(await statusWith('x-amz-checksum-sha256', 'none'), 400)
  t.equal(await statusWith('content-md5', createHash('md5').update('test').digest('base64')), 400)
  t.equal(await statusWith('x-amz-checksum-type', 'COMPOSITE'), 403)
  t.equal(await statusWith('x-amz-meta-a', 'b'), 403)
})
