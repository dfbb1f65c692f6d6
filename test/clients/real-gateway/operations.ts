import { Upload } from '@aws-sdk/lib-storage'
import type { Test } from 'tap'
import { bytes, KiB, MiB, md5, sha256 } from '../../support/content/content.js'
import { bareKeys, controlKeys, fileKeys, type OddKey } from '../../support/content/keys.js'
import { bodyOf, sdkFor } from '../../support/programs/sdk.js'
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

function inOrder(keys: readonly string[]): string[] {
  return [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

export async function operations(t: Test, server: Dealgate): Promise<void> {
  const client = sdkFor(t, server)
  const Bucket = 'operations'
  const object = { Bucket, Key: 'object' }
  await t.rejects(client.headBucket({ Bucket }), { name: 'NotFound' })
  await client.createBucket({ Bucket })
  t.match((await client.listBuckets({})).Buckets, [{ Name: Bucket }])

  const Body = bytes('object', 300 * KiB)
  const stored = {
    ...{ ContentType: 'x/odd', CacheControl: 'max-age=1', ContentDisposition: 'inline', ContentEncoding: 'identity' },
    Metadata: { one: '1' },
  }
  const ETag = `"${md5(Body)}"`
  t.equal((await client.putObject({ ...object, Body, ...stored, Tagging: 'a=b' })).ETag, ETag)
  t.match(await client.headObject(object), { ...stored, ETag, ContentLength: Body.length })
  t.match((await client.getObjectTagging(object)).TagSet, [{ Key: 'a' }])
  t.same(await bodyOf(client, { ...object, Range: 'bytes=1000-1999' }), Body.subarray(1000, 2000))
  const unchanged = await client.getObject({ ...object, IfNoneMatch: ETag }).catch((error) => error)
  t.match(unchanged, { $metadata: { httpStatusCode: 304 } })
  await t.rejects(client.putObject({ ...object, Body, IfNoneMatch: '*' }), { name: 'PreconditionFailed' })
  const ContentMD5 = 'AAAAAAAAAAAAAAAAAAAAAA=='
  await t.rejects(client.putObject({ ...object, Body, ContentMD5 }), { name: 'BadDigest' })
  t.same(await bodyOf(client, object), Body, 'a refused upload changes nothing')

  await client.copyObject({ Bucket, Key: 'copies/copy', CopySource: `${Bucket}/object` })
  t.match(await client.headObject({ Bucket, Key: 'copies/copy' }), { ...stored, ETag })
  await client.putObject({ Bucket, Key: 'empty' })
  t.equal((await bodyOf(client, { Bucket, Key: 'empty' })).length, 0)
  await t.rejects(client.getObject({ Bucket, Key: 'none' }), { name: 'NoSuchKey' })
  const parts = bytes('parts', 5 * MiB + 12_345)
  const params = { Bucket, Key: 'in parts', Body: parts }
  t.match((await new Upload({ client, partSize: 5 * MiB, params }).done()).ETag, /^"[0-9a-f]{32}-2"$/)
  t.equal(sha256(await bodyOf(client, { Bucket, Key: 'in parts' })), sha256(parts))

  t.same(await keysOf(server, Bucket), ['copies/copy', 'empty', 'in parts', 'object'])
  const level = await client.listObjectsV2({ Bucket, Delimiter: '/', MaxKeys: 2 })
  t.match(level, { IsTruncated: true, CommonPrefixes: [{ Prefix: 'copies/' }] })
  await t.rejects(client.deleteBucket({ Bucket }), { name: 'BucketNotEmpty' })
  const Objects = ['copies/copy', 'none', 'empty', 'in parts', 'object'].map((Key) => ({ Key }))
  t.equal((await client.deleteObjects({ Bucket, Delete: { Objects } })).Deleted?.length, Objects.length)
  await client.deleteBucket({ Bucket })
}

export async function keys(t: Test, server: Dealgate): Promise<void> {
  const bucket = 'odd-keys'
  await ask(server, 'PUT', bucket)
  const held: string[] = []
  const all: readonly OddKey[] = [...[...fileKeys, ...controlKeys].map((key) => ({ key })), ...bareKeys]
  for (const { key, legacyRefusal } of all) {
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
