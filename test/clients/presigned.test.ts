import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import t from 'tap'
import { bodyOf } from '../support/programs/sdk.js'
import { startInProcess } from '../support/server/in-process.js'
import { sendAsIs, signedRequest } from '../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

/** As a browser would: whatever is given, to this URL. */
function follow(link: string, method: string, body = '') {
  const { origin, host, pathname, search } = new URL(link)
  return sendAsIs(origin, { method, body }, pathname + search, { host })
}

// How a link is read, and what it may do, is decided above the gateway.
t.test("the SDK's presigner: PUT, GET, HEAD, DELETE and parts", async (t) => {
  const { s3 } = await startInProcess(t, 'full', { identities: [keys] })
  const Bucket = 'links'
  const Key = 'ä folder/a+b %25.txt'
  await s3.createBucket({ Bucket })

  const put = new PutObjectCommand({
    Bucket,
    Key,
    Metadata: { name: 'v a lue', other: 'a,b' },
    Tagging: 'project=x%20y&stage=1',
    ACL: 'private',
    StorageClass: 'STANDARD_IA',
  })
  const putLink = await getSignedUrl(s3, put)
  t.match(putLink, /x-amz-meta-name=.*x-amz-tagging=/, 'the SDK moves headers into the query')
  const stored = await follow(putLink, 'PUT', 'any body')
  t.equal(stored.status, 200, stored.body)
  t.match(await s3.headObject({ Bucket, Key }), { ContentLength: 8, Metadata: { name: 'v a lue', other: 'a,b' } })
  const { TagSet } = await s3.getObjectTagging({ Bucket, Key })
  t.same(TagSet, [
    { Key: 'project', Value: 'x y' },
    { Key: 'stage', Value: '1' },
  ])
  const shown = await follow(await getSignedUrl(s3, new HeadObjectCommand({ Bucket, Key })), 'HEAD')
  t.match(shown, { status: 200, headers: { 'content-length': '8', 'x-amz-meta-name': 'v a lue' } })
  const named = new GetObjectCommand({
    Bucket,
    Key,
    ResponseContentType: 'text/x-named',
    ResponseContentDisposition: 'attachment; filename="ä"',
  })
  t.match(await follow(await getSignedUrl(s3, named), 'GET'), {
    body: 'any body',
    headers: { 'content-type': 'text/x-named' },
  })

  const copy = new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/${encodeURIComponent(Key)}` })
  t.match((await follow(await getSignedUrl(s3, copy), 'PUT')).body, '<CopyObjectResult', 'not an empty object')
  t.equal((await follow(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: 'copy' })), 'GET')).body, 'any body')

  const refused: [string, Partial<ConstructorParameters<typeof PutObjectCommand>[0]>][] = [
    ['an ACL', { ACL: 'authenticated-read' }],
    ['a lock', { ObjectLockLegalHoldStatus: 'ON' }],
    ['tags', { Tagging: 'a=1&a=2' }],
    ['metadata', { Metadata: { big: 'x'.repeat(3000) } }],
    ['a checksum', { ChecksumCRC32: 'AAAAAQ==' }],
  ]
  for (const [what, more] of refused) {
    const link = await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key, ...more }))
    t.ok((await follow(link, 'PUT', 'x')).status >= 400, `${what} in the query counts`)
  }
  t.equal((await follow(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key })), 'GET')).body, 'any body')

  const begun = await follow(
    await getSignedUrl(s3, new CreateMultipartUploadCommand({ Bucket, Key: 'parts', Metadata: { a: 'b' } })),
    'POST',
  )
  const UploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1]
  const part = new UploadPartCommand({ Bucket, Key: 'parts', UploadId, PartNumber: 1 })
  const { headers } = await follow(await getSignedUrl(s3, part), 'PUT', 'a part')
  const complete = new CompleteMultipartUploadCommand({ Bucket, Key: 'parts', UploadId })
  const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${headers.etag}</ETag></Part></CompleteMultipartUpload>`
  const done = await follow(await getSignedUrl(s3, complete), 'POST', list)
  t.match(done, { status: 200, body: /-1&quot;|-1"/ }, done.body)
  t.match(await s3.headObject({ Bucket, Key: 'parts' }), { ContentLength: 6, Metadata: { a: 'b' } })

  for (const name of [Key, 'copy', 'parts']) {
    const link = await getSignedUrl(s3, new DeleteObjectCommand({ Bucket, Key: name }))
    t.equal((await follow(link, 'GET')).code, 'SignatureDoesNotMatch', 'for this method alone')
    t.equal((await follow(link, 'DELETE')).status, 204)
  }
  t.equal((await s3.listObjectsV2({ Bucket })).KeyCount, 0)
})

t.test('a session token is refused, or counts for nothing', async (t) => {
  const { endpoint, gateway } = await startInProcess(t, 'full', { identities: [keys] })
  const ignoring = await startInProcess(t, 'full', { identities: [keys], gateway, sessionToken: 'ignore' })
  const credentials = { ...keys, sessionToken: 'a-token' }
  const [refused, ignored] = [endpoint, ignoring.endpoint].map((endpoint) => {
    const s3 = new S3({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials, maxAttempts: 1 })
    t.teardown(() => s3.destroy())
    return s3
  }) as [S3, S3]
  await t.rejects(refused.listBuckets({}), { name: 'InvalidToken', message: /x-amz-security-token/ })
  await ignored.createBucket({ Bucket: 'tokens' })
  const link = (s3: S3) => getSignedUrl(s3, new PutObjectCommand({ Bucket: 'tokens', Key: 'k' }))
  t.equal((await follow(await link(refused), 'PUT', 'x')).code, 'InvalidToken')
  t.equal((await follow(await link(ignored), 'PUT', 'x')).status, 200)
  t.equal((await follow((await link(ignored)).replace('a-token', 'b-token'), 'PUT', 'x')).code, 'SignatureDoesNotMatch')
})

t.test('x-amz-expected-bucket-owner counts for every operation', async (t) => {
  const { endpoint, proxy, s3 } = await startInProcess(t, 'full', { identities: [keys] })
  await s3.createBucket({ Bucket: 'owned' })
  await s3.putObject({ Bucket: 'owned', Key: 'k', Body: 'bytes' })
  const { Owner } = await s3.listBuckets({})
  const ExpectedBucketOwner = Owner?.ID ?? ''
  t.match(ExpectedBucketOwner, /^[0-9a-f]{64}$/)

  const get = (owner: string) => new GetObjectCommand({ Bucket: 'owned', Key: 'k', ExpectedBucketOwner: owner })
  t.equal(await (await s3.send(get(ExpectedBucketOwner))).Body?.transformToString(), 'bytes')
  await t.rejects(s3.send(get('111122223333')), { name: 'AccessDenied' })
  t.equal((await follow(await getSignedUrl(s3, get(ExpectedBucketOwner)), 'GET')).body, 'bytes')
  t.equal((await follow(await getSignedUrl(s3, get('111122223333')), 'GET')).code, 'AccessDenied', 'also in the query')
  const copy = { Bucket: 'owned', Key: 'copy', CopySource: 'owned/k', ExpectedBucketOwner }
  await t.rejects(s3.copyObject({ ...copy, ExpectedSourceBucketOwner: '111122223333' }), { name: 'AccessDenied' })
  await s3.copyObject({ ...copy, ExpectedSourceBucketOwner: ExpectedBucketOwner })

  for (const { operation } of proxy.operations) {
    const { name, on } = operation
    if (on.resource === 'service' || on.method === 'OPTIONS') continue
    const query = Object.fromEntries(
      (on.query ?? []).map((wanted) => wanted.split('=')).map(([key, value = '']) => [key, value]),
    )
    for (const header of ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner']) {
      const answer = await signedRequest(endpoint, keys, {
        method: on.method,
        path: on.resource === 'object' ? '/owned/k' : '/owned',
        query,
        headers: { [header]: '111122223333', ...(on.header && { [on.header]: '/owned/k' }) },
      })
      t.equal(answer.status, 403, `${name} with ${header}`)
    }
  }
  const { Contents } = await s3.listObjectsV2({ Bucket: 'owned', ExpectedBucketOwner })
  t.match(Contents, [
    { Key: 'copy', Size: 5 },
    { Key: 'k', Size: 5 },
  ])
})

t.test('a link is followed with chunks of unknown length', async (t) => {
  const { s3 } = await startInProcess(t, 'full')
  const object = { Bucket: 'links', Key: 'k' }
  await s3.createBucket({ Bucket: 'links' })
  const body = new Blob(['one ', 'two']).stream()
  const link = await getSignedUrl(s3, new PutObjectCommand(object))
  t.equal((await fetch(link, { method: 'PUT', body, duplex: 'half' } as RequestInit)).status, 200)
  t.equal((await bodyOf(s3, object)).toString(), 'one two')
})
