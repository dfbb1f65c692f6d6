import { createPresignedPost } from '@aws-sdk/s3-presigned-post'
import t from 'tap'
import { DAY_MS } from '../../../src/common/time.js'
import { startInProcess } from '../../support/server/in-process.js'

// What went wrong with versions in other servers: the numbers are those of issues of seaweedfs/seaweedfs.

const Bucket = 'box'

async function startBox(t: Parameters<typeof startInProcess>[0]) {
  const { s3 } = await startInProcess(t, 'full')
  await s3.createBucket({ Bucket })
  const enable = () => s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  const put = async (Key: string, Body = 'x') => (await s3.putObject({ Bucket, Key, Body })).VersionId
  const keys = async () => ((await s3.listObjectsV2({ Bucket })).Contents ?? []).map(({ Key }) => Key)
  return { s3, enable, put, keys }
}

t.test('#10681: an object from before versioning is not listed once it is deleted', async (t) => {
  const { s3, enable, put, keys } = await startBox(t)
  await put('old')
  await enable()
  await s3.deleteObject({ Bucket, Key: 'old' })
  t.same(await keys(), [])
  const { Versions, DeleteMarkers } = await s3.listObjectVersions({ Bucket })
  t.match(Versions, [{ Key: 'old', VersionId: 'null', IsLatest: false }])
  t.match(DeleteMarkers, [{ Key: 'old', IsLatest: true }])
})

t.test('#9841: an object is listed whichever of its versions is removed', async (t) => {
  const { s3, enable, put, keys } = await startBox(t)
  await enable()
  const ids = [await put('a', 'one'), await put('a', 'two'), await put('a', 'three')]
  await put('b')
  for (const VersionId of [ids[1], ids[2]]) {
    await s3.deleteObject({ Bucket, Key: 'a', VersionId })
    t.same(await keys(), ['a', 'b'])
  }
  t.equal((await s3.headObject({ Bucket, Key: 'a' })).VersionId, ids[0])
})

t.test('#8210, #9884: folders are in listings as far as clients have stored them', async (t) => {
  const { s3, enable, put } = await startBox(t)
  await enable()
  for (const key of ['dir/', 'dir/a', 'dir/a', 'other/deep/b', 'top']) await put(key)
  await s3.deleteObject({ Bucket, Key: 'other/deep/b' })
  const list = async (more = {}) => {
    const { Versions = [], DeleteMarkers = [], CommonPrefixes = [] } = await s3.listObjectVersions({ Bucket, ...more })
    const [versions, markers] = [Versions, DeleteMarkers].map((list) => list.map(({ Key }) => Key))
    return { versions, markers, prefixes: CommonPrefixes.map(({ Prefix }) => Prefix) }
  }
  t.same(await list(), {
    versions: ['dir/', 'dir/a', 'dir/a', 'other/deep/b', 'top'],
    ...{ markers: ['other/deep/b'], prefixes: [] },
  })
  t.same(await list({ Delimiter: '/' }), { versions: ['top'], markers: [], prefixes: ['dir/', 'other/'] })
  t.same(await list({ Delimiter: '/', Prefix: 'dir/' }), {
    ...{ versions: ['dir/', 'dir/a', 'dir/a'], markers: [], prefixes: [] },
  })
  const { CommonPrefixes, Contents } = await s3.listObjectsV2({ Bucket, Delimiter: '/' })
  t.same(
    CommonPrefixes?.map(({ Prefix }) => Prefix),
    ['dir/'],
    'what is deleted makes no prefix',
  )
  t.match(Contents, [{ Key: 'top' }])
})

t.test('a form locks what it stores', async (t) => {
  const { s3 } = await startInProcess(t, 'full')
  await s3.createBucket({ Bucket, ObjectLockEnabledForBucket: true })
  const end = new Date(Math.ceil(Date.now() / 1000) * 1000 + DAY_MS)
  const lock = {
    'x-amz-object-lock-mode': 'GOVERNANCE',
    'x-amz-object-lock-retain-until-date': end.toISOString(),
    'x-amz-object-lock-legal-hold': 'ON',
  }
  const post = async (Fields: Record<string, string>) => {
    const { url, fields } = await createPresignedPost(s3, { Bucket, Key: 'form', Fields })
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    form.set('file', new Blob(['posted']))
    return fetch(url, { method: 'POST', body: form })
  }
  const posted = await post(lock)
  t.equal(posted.status, 204)
  const VersionId = String(posted.headers.get('x-amz-version-id'))
  t.match(await s3.headObject({ Bucket, Key: 'form', VersionId }), {
    ...{ ObjectLockMode: 'GOVERNANCE', ObjectLockLegalHoldStatus: 'ON', ObjectLockRetainUntilDate: end },
  })
  await t.rejects(s3.deleteObject({ Bucket, Key: 'form', VersionId }), { name: 'AccessDenied' })
  t.equal((await post({ ...lock, 'x-amz-object-lock-mode': 'FOREVER' })).status, 400)
})
