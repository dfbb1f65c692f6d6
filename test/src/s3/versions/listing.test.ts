import type { ListObjectVersionsCommandInput, S3 } from '@aws-sdk/client-s3'
import t from 'tap'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest } from '../../../support/sign/signed-request.js'

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const Bucket = 'box'

/** What the pages of a listing show, in their order: `key id`, with `*` at the latest, `-` at a marker. */
async function pagesOf(s3: S3, asked: Partial<ListObjectVersionsCommandInput>) {
  const pages: { names: string[]; prefixes: string[] }[] = []
  let markers = {}
  for (;;) {
    const page = await s3.listObjectVersions({ Bucket, ...asked, ...markers })
    const names = [
      ...(page.Versions ?? []).map((one) => ({ ...one, sign: '' })),
      ...(page.DeleteMarkers ?? []).map((one) => ({ ...one, sign: '-' })),
    ].map(({ Key, VersionId, IsLatest, sign }) => `${Key} ${sign}${VersionId}${IsLatest ? '*' : ''}`)
    pages.push({ names, prefixes: (page.CommonPrefixes ?? []).map(({ Prefix }) => String(Prefix)) })
    if (!page.IsTruncated) return pages
    markers = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker }
  }
}

t.test('ListObjectVersions', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: [keys] })
  await s3.createBucket({ Bucket })
  await s3.putObject({ Bucket, Key: 'a', Body: 'null' })
  await s3.putObject({ Bucket, Key: 'gone', Body: 'null' })
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  const put = async (Key: string) => (await s3.putObject({ Bucket, Key, Body: 'x' })).VersionId
  const a1 = await put('a')
  const a2 = await put('a')
  const gone = (await s3.deleteObject({ Bucket, Key: 'gone' })).VersionId
  const deep = [await put('dir/one'), await put('dir/one'), await put('dir/two')]
  const odd = await put('z ü+&')
  const all = [
    `a ${a2}*`,
    `a ${a1}`,
    'a null',
    `dir/one ${deep[1]}*`,
    `dir/one ${deep[0]}`,
    `dir/two ${deep[2]}*`,
    'gone null',
    `gone -${gone}*`,
    `z ü+& ${odd}*`,
  ]

  t.test('pages of every size', async (t) => {
    for (const MaxKeys of [1, 2, 3, 5, 1000]) {
      const pages = await pagesOf(s3, { MaxKeys })
      const names = pages.flatMap((page) => page.names)
      t.same([...names].sort(), [...all].sort(), `pages of ${MaxKeys}`)
      t.ok(pages.slice(0, -1).every((page) => page.names.length === MaxKeys))
    }
    const keysOnly = (await pagesOf(s3, { MaxKeys: 1 })).flatMap(({ names }) => names)
    t.same(keysOnly, [...all.slice(0, 6), `gone -${gone}*`, 'gone null', all[8]], 'the newest version first')
  })

  t.test('prefix, delimiter and encoding', async (t) => {
    t.same(await pagesOf(s3, { Prefix: 'dir/o' }), [{ names: all.slice(3, 5), prefixes: [] }])
    for (const MaxKeys of [1, 2, 1000]) {
      const pages = await pagesOf(s3, { Delimiter: '/', MaxKeys })
      t.same(
        pages.flatMap(({ prefixes }) => prefixes),
        ['dir/'],
        `pages of ${MaxKeys}`,
      )
      t.equal(pages.flatMap(({ names }) => names).length, all.length - 3)
    }
    const { body } = await signedRequest(endpoint, keys, {
      ...{ method: 'GET', path: `/${Bucket}` },
      query: { versions: '', 'encoding-type': 'url', prefix: 'z ' },
    })
    t.match(body, '<Key>z%20%C3%BC%2B%26</Key>')
    t.match(body, '<Prefix>z%20</Prefix>')
  })

  t.test('what an entry has', async (t) => {
    const { Versions, DeleteMarkers } = await s3.listObjectVersions({ Bucket, Prefix: 'gone' })
    t.match(Versions, [
      { ETag: /^"[0-9a-f]{32}"$/, Size: 4, StorageClass: 'STANDARD', IsLatest: false, Owner: { ID: /^[0-9a-f]{64}$/ } },
    ])
    t.match(DeleteMarkers, [{ IsLatest: true, Owner: { ID: /^[0-9a-f]{64}$/ }, LastModified: Date }])
  })

  t.test('a page goes on where the last one ended, also when its versions are gone', async (t) => {
    const first = await s3.listObjectVersions({ Bucket, MaxKeys: 2 })
    for (const { Key, VersionId } of first.Versions ?? []) await s3.deleteObject({ Bucket, Key, VersionId })
    const markers = { KeyMarker: first.NextKeyMarker, VersionIdMarker: first.NextVersionIdMarker }
    const { Versions } = await s3.listObjectVersions({ Bucket, MaxKeys: 1, ...markers })
    t.match(Versions, [{ Key: 'a', VersionId: 'null' }])
    t.match(await s3.getObject({ Bucket, Key: 'a' }), { VersionId: 'null' }, 'the version below is the current one')
  })

  t.test('refusals', async (t) => {
    const ask = async (query: Record<string, string>) => {
      const { status, code } = await signedRequest(endpoint, keys, { method: 'GET', path: `/${Bucket}`, query })
      return `${status} ${code}`
    }
    t.equal(await ask({ versions: '', 'version-id-marker': 'null' }), '400 InvalidArgument')
    t.equal(await ask({ versions: '', 'key-marker': 'a', 'version-id-marker': 'no-id' }), '400 InvalidArgument')
    t.equal(await ask({ versions: '', 'max-keys': '-1' }), '400 InvalidArgument')
    t.equal(await ask({ versions: '', 'max-keys': '0' }), '200 ')
    t.rejects(s3.listObjectVersions({ Bucket: 'absent' }), { name: 'NoSuchBucket' })
  })
})

t.test('keys are listed by what is current, and prefixes by what clients have stored', async (t) => {
  const { s3 } = await startInProcess(t, 'full', { identities: [keys] })
  await s3.createBucket({ Bucket })
  const put = async (Key: string) => (await s3.putObject({ Bucket, Key, Body: 'x' })).VersionId
  const listed = async (more = {}) => {
    const { Contents = [], CommonPrefixes = [] } = await s3.listObjectsV2({ Bucket, ...more })
    return [...Contents.map(({ Key }) => Key), ...CommonPrefixes.map(({ Prefix }) => Prefix)]
  }
  await put('from before')
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  await s3.deleteObject({ Bucket, Key: 'from before' })
  t.same(await listed(), [])
  const [first, ...later] = [await put('a'), await put('a'), await put('a')]
  for (const VersionId of later) {
    await s3.deleteObject({ Bucket, Key: 'a', VersionId })
    t.same(await listed(), ['a'], 'whichever of its versions is removed')
  }
  t.equal((await s3.headObject({ Bucket, Key: 'a' })).VersionId, first)
  for (const key of ['dir/', 'dir/b', 'other/deep/c']) await put(key)
  await s3.deleteObject({ Bucket, Key: 'other/deep/c' })
  t.same(await listed({ Delimiter: '/' }), ['a', 'dir/'], 'what is deleted makes no prefix')
  const [page] = await pagesOf(s3, { Delimiter: '/' })
  t.same(page?.prefixes, ['dir/', 'other/'], 'but its versions do')
  const [folder] = await pagesOf(s3, { Delimiter: '/', Prefix: 'dir/' })
  t.match(folder, { names: [/^dir\/ /, /^dir\/b /], prefixes: [] })
})

t.test('1,001 versions of one key, between the keys before and after it', async (t) => {
  const { s3 } = await startInProcess(t, 'full', { identities: [keys] })
  await s3.createBucket({ Bucket })
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  for (const Key of ['a', 'c']) await s3.putObject({ Bucket, Key, Body: Key })
  const ids: (string | undefined)[] = []
  for (let n = 0; n < 1001; n++) ids.push((await s3.putObject({ Bucket, Key: 'b', Body: String(n) })).VersionId)
  const pages = await pagesOf(s3, {})
  t.equal(pages.length, 2)
  t.equal(pages[0]?.names.length, 1000)
  const listed = pages.flatMap(({ names }) => names)
  t.same(
    listed.slice(1, -1).map((name) => name.replace(/^b |\*$/g, '')),
    ids.reverse(),
  )
  t.match([listed[0], listed.at(-1)], [/^a .*\*$/, /^c .*\*$/])
})
