import type { S3 } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import t, { type Test } from 'tap'
import { bytes, MiB } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { Aws, awsVersions } from '../support/programs/aws-cli.js'
import { sdkFor } from '../support/programs/sdk.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'

const Bucket = 'tags-and-cors'

inEachMode(t, tagsAndCors)

async function tagsAndCors(t: Test, server: Dealgate): Promise<void> {
  const client = sdkFor(t, server)
  await client.createBucket({ Bucket })
  await t.test('tags of objects', (t) => objectTags(t, client))
  await t.test('settings go with their bucket', (t) => withBucket(t, client))
  // The gateway makes no difference to what is sent and read.
  if (server.mode === 'full') {
    await t.test('tag sets', (t) => tagSets(t, client, server))
    await t.test('preflight', (t) => preflight(t, client, server))
    await t.test('aws-cli', (t) => awsCli(t, server))
  }
  await t.test('a restart', (t) => restart(t, client, server))
}

async function tagsOf(client: S3, Key: string): Promise<Record<string, string>> {
  const { TagSet = [] } = await client.getObjectTagging({ Bucket, Key })
  return Object.fromEntries(TagSet.map(({ Key = '', Value = '' }) => [Key, Value]))
}

async function objectTags(t: Test, client: S3): Promise<void> {
  const put = (Key: string, Tagging?: string) =>
    client.putObject({ Bucket, Key, Body: 'body', Tagging, Metadata: { a: 'b' } })
  const first = await put('a', 'colour=red&shape=%2Fround+one')
  t.same(await tagsOf(client, 'a'), { colour: 'red', shape: '/round one' })
  const head = await client.headObject({ Bucket, Key: 'a' })
  t.equal(head.TagCount, 2)
  const TagSet = [{ Key: 'x', Value: '' }]
  await client.putObjectTagging({ Bucket, Key: 'a', VersionId: 'null', Tagging: { TagSet } })
  t.same(await tagsOf(client, 'a'), { x: '' })
  const tagged = await client.headObject({ Bucket, Key: 'a' })
  t.same([tagged.ETag, tagged.Metadata, tagged.LastModified], [first.ETag, { a: 'b' }, head.LastModified], 'rest stays')

  const copy = (Key: string, more = {}) => client.copyObject({ Bucket, Key, CopySource: `${Bucket}/a`, ...more })
  await copy('b')
  t.same(await tagsOf(client, 'b'), { x: '' }, 'a copy has the tags of its source')
  await copy('b', { TaggingDirective: 'REPLACE', Tagging: 'y=1' })
  t.same(await tagsOf(client, 'b'), { y: '1' })
  await copy('a', { MetadataDirective: 'REPLACE', Metadata: { c: 'd' } })
  t.same(await tagsOf(client, 'a'), { x: '' }, 'a copy onto itself keeps them')
  await t.rejects(copy('b', { Tagging: 'y=1' }), { name: 'InvalidArgument' })
  await new Upload({ client, params: { Bucket, Key: 'big', Body: bytes('big', 6 * MiB), Tagging: 'parts=2' } }).done()
  t.same(await tagsOf(client, 'big'), { parts: '2' })

  await put('a')
  t.same(await tagsOf(client, 'a'), {}, 'an overwritten object has none')
  await put('a', 'x=1')
  await client.deleteObject({ Bucket, Key: 'a' })
  await put('a')
  t.same(await tagsOf(client, 'a'), {}, 'nor has one that was removed and put anew')
}

async function tagSets(t: Test, client: S3, server: Dealgate): Promise<void> {
  const Key = 'tag-sets'
  await client.putObject({ Bucket, Key })
  const set = (names: readonly string[]) => {
    const TagSet = names.map((name) => ({ Key: name, Value: name }))
    return client.putObjectTagging({ Bucket, Key, Tagging: { TagSet } })
  }
  const kept = ['z', 'a', 'Ünï cödé', 'a+b-c=d.e_f:g/h@i', '文字', '𝒳'.repeat(64), 'xaws:']
  await set(kept)
  t.same(Object.keys(await tagsOf(client, Key)), kept, 'in their order')
  const eleven = Array.from({ length: 11 }, (_, i) => `k${i}`)
  await t.rejects(set(eleven), { name: 'BadRequest', message: 'Object tags cannot be greater than 10' })
  for (const wrong of ['aws:x', 'AWS:x', '', 'x'.repeat(129), '𝒳'.repeat(65), 'a!', 'a\nb'])
    await t.rejects(set([wrong]), { name: 'InvalidTag' }, wrong.slice(0, 20))
  t.same(Object.keys(await tagsOf(client, Key)), kept)
  const target = `/${Bucket}/${Key}?tagging`
  const malformed = await send(server, { method: 'PUT', target, body: Buffer.from('no xml') })
  t.match(malformed, { status: 400, code: 'MalformedXML' })
  t.match(await send(server, { method: 'PUT', target }), { status: 400, code: 'MissingRequestBodyError' })
}

const RULE = { AllowedMethods: ['GET'], AllowedOrigins: ['*'] }

async function withBucket(t: Test, client: S3): Promise<void> {
  const bucket = { Bucket: 'short-lived' }
  const cors = { ...bucket, CORSConfiguration: { CORSRules: [RULE] } }
  const tagging = { ...bucket, Tagging: { TagSet: [{ Key: 'a', Value: '1' }] } }
  await t.rejects(client.putBucketCors(cors), { name: 'NoSuchBucket' })
  await t.rejects(client.putBucketTagging(tagging), { name: 'NoSuchBucket' })
  await client.createBucket(bucket)
  await client.putBucketTagging(tagging)
  await client.putBucketCors(cors)
  t.match(await client.getBucketTagging(bucket), tagging.Tagging)
  await client.deleteBucket(bucket)
  await client.createBucket(bucket)
  await t.rejects(client.getBucketTagging(bucket), { name: 'NoSuchTagSet' })
  await t.rejects(client.getBucketCors(bucket), { name: 'NoSuchCORSConfiguration' })
}

async function preflight(t: Test, client: S3, server: Dealgate): Promise<void> {
  const ask = async (headers: Record<string, string>) => {
    const url = `${server.endpoint}/${Bucket}/any/key?uploads&X-Amz-Signature=0`
    const answer = await fetch(url, { method: 'OPTIONS', headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const asking = (origin: string, method: string, headers = '') => ({
    origin,
    'access-control-request-method': method,
    ...(headers && { 'access-control-request-headers': headers }),
  })
  t.match(await ask(asking('http://a.example', 'PUT')), { status: 403, text: /CORSResponse: CORS is not enabled/ })
  const CORSRules = [
    {
      AllowedMethods: ['PUT'],
      AllowedOrigins: ['http://*.example'],
      AllowedHeaders: ['x-amz-*', 'Content-Type'],
      MaxAgeSeconds: 60,
    },
    { AllowedMethods: ['GET', 'HEAD'], AllowedOrigins: ['*'], ExposeHeaders: ['ETag'], MaxAgeSeconds: 30 },
  ]
  await client.putBucketCors({ Bucket, CORSConfiguration: { CORSRules } })
  t.match((await client.getBucketCors({ Bucket })).CORSRules, CORSRules)
  const allowed = await ask(asking('http://a.example', 'PUT', 'X-Amz-Date, content-type'))
  t.equal(allowed.status, 200)
  t.match(Object.fromEntries(allowed.headers), {
    'access-control-allow-origin': 'http://a.example',
    'access-control-allow-methods': 'PUT',
    'access-control-allow-headers': 'x-amz-date, content-type',
    'access-control-allow-credentials': 'true',
    'access-control-max-age': '60',
    vary: /Origin/,
  })
  for (const refused of [
    asking('http://a.example', 'DELETE'),
    asking('http://a.other', 'PUT'),
    asking('http://a.example', 'PUT', 'range'),
  ])
    t.match(await ask(refused), {
      status: 403,
      text: /AccessForbidden.*CORSResponse: This CORS request is not allowed/,
    })
  t.match(await ask(asking('http://a.example', 'PATCH')), { status: 400, text: /BadRequest/ })
  t.match(await ask({ 'access-control-request-method': 'PUT' }), { status: 400 })

  await client.putObject({ Bucket, Key: 'seen', Body: 'x' })
  const get = (unsignedHeaders: Record<string, string>, key = 'seen') =>
    send(server, { method: 'GET', target: `/${Bucket}/${key}`, unsignedHeaders })
  const open = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'ETag', vary: /Origin/ }
  t.match((await get({ origin: 'http://any' })).headers, open)
  t.match((await get({ origin: 'http://any' }, 'none')).headers, open, 'errors too')
  t.match(await fetch(`${server.endpoint}/${Bucket}/seen`, { headers: { origin: 'http://any' } }), { status: 403 })
  t.equal((await get({})).headers['access-control-allow-origin'], undefined)
}

async function awsCli(t: Test, server: Dealgate): Promise<void> {
  const [version] = await awsVersions(t)
  if (version === undefined) return
  const aws = new Aws(version, server, temporaryFolder(t))
  const bucket = ['--bucket', Bucket]
  const object = [...bucket, '--key', 'by-cli']
  const TagSet = [{ Key: 'c', Value: '3' }]
  await aws.api('put-object', ...object, '--tagging', 'a=1&b=2')
  await aws.api('put-object-tagging', ...object, '--tagging', JSON.stringify({ TagSet }))
  await aws.s3('cp', `s3://${Bucket}/by-cli`, `s3://${Bucket}/by-cli-2`)
  t.same((await aws.api('get-object-tagging', ...bucket, '--key', 'by-cli-2')).TagSet, TagSet)
  await aws.api('delete-object-tagging', ...object)
  t.same((await aws.api('get-object-tagging', ...object)).TagSet, [])
  await aws.api('put-bucket-tagging', ...bucket, '--tagging', JSON.stringify({ TagSet }))
  t.same((await aws.api('get-bucket-tagging', ...bucket)).TagSet, TagSet)
  await aws.api('delete-bucket-tagging', ...bucket)
  const cors = { CORSRules: [{ ...RULE, ID: 'one', MaxAgeSeconds: 5 }] }
  await aws.api('put-bucket-cors', ...bucket, '--cors-configuration', JSON.stringify(cors))
  t.same(await aws.api('get-bucket-cors', ...bucket), cors)
  await aws.api('delete-bucket-cors', ...bucket)
  t.match(await aws.apiFailing('get-bucket-cors', ...bucket), 'NoSuchCORSConfiguration')
}

async function restart(t: Test, client: S3, server: Dealgate): Promise<void> {
  await client.putObject({ Bucket, Key: 'kept', Body: 'x', Tagging: 'a=1' })
  await client.putBucketTagging({ Bucket, Tagging: { TagSet: [{ Key: 'b', Value: '2' }] } })
  await server.kill9()
  await server.start()
  const again = sdkFor(t, server)
  t.same(await tagsOf(again, 'kept'), { a: '1' })
  t.match(await again.getBucketTagging({ Bucket }), { TagSet: [{ Key: 'b', Value: '2' }] })
}
