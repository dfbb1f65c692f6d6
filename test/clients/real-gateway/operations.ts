import type { Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256 } from '../../support/content/content.js'
import { bareKeys, controlKeys, fileKeys } from '../../support/content/keys.js'
import type { Dealgate } from '../../support/server/dealgate.js'
import { type Answer, type Sending, send, targetOf } from '../../support/sign/send.js'
import type { RealGateway } from './real-gateway.js'

/** A signed request about a bucket, or about an object of it. */
export function ask(
  server: Dealgate,
  method: string,
  bucket: string,
  key = '',
  more: Partial<Sending> & { query?: string } = {},
): Promise<Answer> {
  const { query = '', ...rest } = more
  const target = key === '' ? `/${bucket}${query && `?${query}`}` : targetOf(bucket, key, query)
  return send(server, { method, target, ...rest })
}

/** Keys of a flat listing, in its order. */
export async function keysOf(server: Dealgate, bucket: string, query = ''): Promise<string[]> {
  const { body } = await ask(server, 'GET', bucket, '', { query: `list-type=2&encoding-type=url${query}` })
  const found = [...body.toString().matchAll(/<Key>([^<]+)<\/Key>/g)]
  return found.map(([, name = '']) => decodeURIComponent(name.replaceAll('+', ' ')))
}

export function inOrder(keys: readonly string[]): string[] {
  return [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

export async function operations(t: Test, server: Dealgate): Promise<void> {
  const bucket = 'operations'
  t.equal((await ask(server, 'HEAD', bucket)).status, 404)
  t.equal((await ask(server, 'PUT', bucket)).status, 200)
  t.equal((await ask(server, 'HEAD', bucket)).status, 200)
  t.match((await send(server, { method: 'GET', target: '/' })).body.toString(), `<Name>${bucket}</Name>`)

  const data = bytes('object', 300 * KiB)
  const headers = {
    ...{ 'content-type': 'x/odd', 'cache-control': 'max-age=1', 'content-disposition': 'inline' },
    ...{ 'content-encoding': 'identity', 'x-amz-meta-one': '1', 'x-amz-tagging': 'a=b' },
  }
  const put = await ask(server, 'PUT', bucket, 'object', { body: data, headers })
  t.match([put.status, put.headers.etag], [200, `"${md5(data)}"`], `${put.body}`)
  const head = await ask(server, 'HEAD', bucket, 'object')
  const { 'x-amz-tagging': _, ...stored } = headers
  t.match(head.headers, { ...stored, etag: `"${md5(data)}"`, 'content-length': String(data.length) })
  const got = await ask(server, 'GET', bucket, 'object')
  t.equal(sha256(got.body), sha256(data))
  t.match(got.headers, stored)
  t.match((await ask(server, 'GET', bucket, 'object', { query: 'tagging' })).body.toString(), '<Key>a</Key>')
  const part = await ask(server, 'GET', bucket, 'object', { headers: { range: 'bytes=1000-1999' } })
  t.match([part.status, sha256(part.body)], [206, sha256(data.subarray(1000, 2000))])
  const matching = { 'if-none-match': `"${md5(data)}"` }
  t.equal((await ask(server, 'GET', bucket, 'object', { headers: matching })).status, 304)
  const fresh = { body: data, headers: { 'if-none-match': '*' } }
  t.equal((await ask(server, 'PUT', bucket, 'object', fresh)).code, 'PreconditionFailed')
  const wrong = { body: data, headers: { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' } }
  t.equal((await ask(server, 'PUT', bucket, 'object', wrong)).code, 'BadDigest')
  t.equal(sha256((await ask(server, 'GET', bucket, 'object')).body), sha256(data), 'a refused upload changes nothing')

  const from = { headers: { 'x-amz-copy-source': `/${bucket}/object` } }
  t.equal((await ask(server, 'PUT', bucket, 'copies/copy', from)).status, 200)
  t.match((await ask(server, 'HEAD', bucket, 'copies/copy')).headers, { ...stored, etag: `"${md5(data)}"` })
  t.equal((await ask(server, 'PUT', bucket, 'empty', { body: Buffer.of() })).status, 200)
  t.equal((await ask(server, 'GET', bucket, 'empty')).body.length, 0)
  t.equal((await ask(server, 'GET', bucket, 'none')).code, 'NoSuchKey')

  await multipart(t, server, bucket)
  t.same(await keysOf(server, bucket), ['copies/copy', 'empty', 'in parts', 'object'])
  const { body } = await ask(server, 'GET', bucket, '', { query: 'list-type=2&delimiter=/&max-keys=2' })
  t.match(body.toString(), /<IsTruncated>true<.*<Prefix>copies\/<\/Prefix>/s)
  t.equal((await ask(server, 'DELETE', bucket)).code, 'BucketNotEmpty')
  const doomed = ['copies/copy', 'none', 'empty', 'in parts', 'object'].map(
    (key) => `<Object><Key>${key}</Key></Object>`,
  )
  const removal = Buffer.from(`<Delete>${doomed.join('')}</Delete>`)
  const removed = await ask(server, 'POST', bucket, '', { query: 'delete', body: removal, headers: digestOf(removal) })
  t.equal(removed.body.toString().split('<Deleted>').length - 1, doomed.length)
  t.equal((await ask(server, 'DELETE', bucket)).status, 204)
}

function digestOf(body: Buffer): Record<string, string> {
  return { 'content-md5': Buffer.from(md5(body), 'hex').toString('base64') }
}

async function multipart(t: Test, server: Dealgate, bucket: string): Promise<void> {
  const begun = await ask(server, 'POST', bucket, 'in parts', { query: 'uploads' })
  const id = /<UploadId>(.*)<\/UploadId>/.exec(begun.body.toString())?.[1] ?? ''
  const parts = [bytes('part 1', 5 * MiB), bytes('part 2', 12_345)]
  for (const [i, body] of parts.entries()) {
    const query = `partNumber=${i + 1}&uploadId=${id}`
    t.equal((await ask(server, 'PUT', bucket, 'in parts', { query, body })).headers.etag, `"${md5(body)}"`)
  }
  const list = parts.map((part, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${md5(part)}</ETag></Part>`)
  const body = Buffer.from(`<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`)
  t.equal((await ask(server, 'POST', bucket, 'in parts', { query: `uploadId=${id}`, body })).status, 200)
  const whole = await ask(server, 'GET', bucket, 'in parts')
  const etag = md5(Buffer.concat(parts.map((part) => Buffer.from(md5(part), 'hex'))))
  t.match([sha256(whole.body), whole.headers.etag], [sha256(Buffer.concat(parts)), `"${etag}-2"`])
}

export async function keys(t: Test, server: Dealgate): Promise<void> {
  const bucket = 'odd-keys'
  await ask(server, 'PUT', bucket)
  const held: string[] = []
  for (const { key, legacyRefusal } of [...fileKeys, ...controlKeys].map(unrefused).concat(bareKeys)) {
    const body = bytes(key, 60)
    const put = await ask(server, 'PUT', bucket, key, { body })
    if (legacyRefusal) {
      t.match([put.status, put.code], [400, 'InvalidArgument'])
      t.match(put.message?.replaceAll('&quot;', '"'), legacyRefusal)
      continue
    }
    t.equal(put.status, 200, JSON.stringify(key))
    t.same((await ask(server, 'GET', bucket, key)).body, body)
    held.push(key)
  }
  t.same(await keysOf(server, bucket), inOrder(held))
  for (const key of held) t.equal((await ask(server, 'DELETE', bucket, key)).status, 204)
  t.equal((await ask(server, 'DELETE', bucket)).status, 204)
}

function unrefused(key: string): { key: string; legacyRefusal?: RegExp } {
  return { key }
}

/** A folder object is removed, whichever client made it, and nothing beneath it. */
export async function folderObjects(t: Test, server: Dealgate, { user }: RealGateway): Promise<void> {
  const bucket = 'folder-objects'
  await ask(server, 'PUT', bucket)
  for (const key of ['photos/', 'a/b/'])
    t.equal((await ask(server, 'PUT', bucket, key, { body: Buffer.of() })).status, 200)
  for (const key of ['made/', 'filled/']) await user.put(bucket, key, Buffer.of())
  for (const key of ['filled/x', 'fs.json']) await user.put(bucket, key, Buffer.from('{}'))
  for (const key of ['photos/', 'a/b/', 'made/']) t.equal((await ask(server, 'HEAD', bucket, key)).status, 200, key)
  const listed = (await keysOf(server, bucket)).filter((key) => key !== 'filled/')
  t.same(listed, ['a/b/', 'filled/x', 'fs.json', 'made/', 'photos/'])
  t.equal((await ask(server, 'HEAD', bucket, 'none/')).status, 404)
  const message = /folder of the same name/
  t.match(await ask(server, 'PUT', bucket, 'fs.json/x', { body: Buffer.from('x') }), {
    code: 'InvalidRequest',
    message,
  })
  t.match(await ask(server, 'PUT', bucket, 'filled', { body: Buffer.from('x') }), { code: 'InvalidRequest', message })

  for (const key of ['filled/', 'photos/', 'a/', 'a/b/', 'made/']) {
    t.equal((await ask(server, 'DELETE', bucket, key)).status, 204, key)
    t.equal((await ask(server, 'HEAD', bucket, key)).status, 404, key)
  }
  t.same(await keysOf(server, bucket), ['filled/x', 'fs.json'])
  for (const key of ['filled/x', 'fs.json']) await ask(server, 'DELETE', bucket, key)
  t.equal((await ask(server, 'DELETE', bucket)).status, 204)
}
