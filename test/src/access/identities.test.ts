import t from 'tap'
import type { Identity } from '../../../src/api/identity.js'
import type { AnyOperation } from '../../../src/api/operation.js'
import type { Plugin } from '../../../src/api/plugin.js'
import { refusedOperations } from '../../../src/s3/refused.js'
import { contentMd5 } from '../../support/content/content.js'
import { type InProcess, startInProcess } from '../../support/server/in-process.js'
import { modes } from '../../support/server/modes.js'
import { presignedRequest, signedRequest, type TextAnswer, type Wanted } from '../../support/sign/signed-request.js'

/** Two identities on one account, who try every operation that there is against each other. */

const owner: Identity = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const readwrite = (bucket: string, prefix?: string) =>
  ({ bucket, ...(prefix !== undefined && { prefix }), access: 'readwrite' }) as const
const limitedTo = (name: string): Identity => ({
  ...{ accessKeyId: name, secretAccessKey: `${name}-secret` },
  rights: [readwrite(`${name}-data`), readwrite('shared', `${name}/`)],
})
const alice = limitedTo('alice')
const mallory = limitedTo('mallory')
const BUCKETS = ['alice-data', 'mallory-data', 'shared']

/**
 * What an operation needs beside its own selector to get as far as asking whether it may. An operation that is refused
 * for another reason needs a line here.
 */
const bodies: Readonly<Record<string, string>> = {
  DeleteObjects: '<Delete><Object><Key>secret</Key></Object></Delete>',
  CompleteMultipartUpload:
    '<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"0"</ETag></Part></CompleteMultipartUpload>',
  PutBucketTagging: '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>',
  PutObjectTagging: '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>',
}
const headers: Readonly<Record<string, Record<string, string>>> = {
  GetObjectAttributes: { 'x-amz-object-attributes': 'ETag' },
}

/**
 * What a caller with rights to a part of a bucket may know and do of the whole: that it is there, and what of it is
 * his.
 */
const OPEN_TO_PARTS = new Set([
  ...['HeadBucket', 'GetBucketLocation', 'GetBucketVersioning', 'GetBucketOwnershipControls', 'DeleteObjects'],
  ...['ListObjects', 'ListObjectsV2', 'ListObjectVersions', 'ListMultipartUploads', 'ListBucketUsage'],
  ...['GetZip', 'PostZip', 'KeepZipSelection'],
])

interface Target {
  readonly bucket: string
  readonly key: string
  readonly uploadId: string
}

/** A request for this operation on that object or its bucket. */
function requestFor({ name, on }: AnyOperation, target: Target, copySource?: string): Wanted {
  const values: Record<string, string> = { uploadId: target.uploadId, partNumber: '1' }
  const query = Object.fromEntries(
    (on.query ?? []).map((wanted) => {
      const [key = '', value] = wanted.split('=')
      return [key, value ?? values[key] ?? '']
    }),
  )
  const needed: Record<string, string> = { ...headers[name] }
  if (on.header === 'x-amz-copy-source') needed[on.header] = copySource ?? `/${target.bucket}/${target.key}`
  else if (on.header !== undefined) needed[on.header] ??= '1'
  const path = on.resource === 'object' ? `/${target.bucket}/${target.key}` : `/${target.bucket}`
  return { method: on.method, path, query, headers: needed, body: bodies[name] }
}

async function prepare({ endpoint }: InProcess): Promise<Target[]> {
  const put = async (path: string, body: string) => {
    const { status } = await signedRequest(endpoint, owner, { method: 'PUT', path, body })
    if (status !== 200) throw new Error(`PUT ${path}: ${status}`)
  }
  for (const bucket of BUCKETS) await put(`/${bucket}`, '')
  for (const name of ['alice', 'mallory']) {
    await put(`/${name}-data/secret`, `the secret of ${name}`)
    await put(`/shared/${name}/secret`, `the shared secret of ${name}`)
  }
  const targets: Target[] = []
  for (const [bucket, key] of [
    ['alice-data', 'secret'],
    ['shared', 'alice/secret'],
  ] as const) {
    const path = `/${bucket}/${key}`
    const begun = await signedRequest(endpoint, alice, { method: 'POST', path, query: { uploads: '' } })
    const uploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1] ?? ''
    const part = { method: 'PUT', path, query: { uploadId, partNumber: '1' }, body: 'a part' }
    const { status } = await signedRequest(endpoint, alice, part)
    if (status !== 200) throw new Error(`UploadPart: ${status}`)
    targets.push({ bucket, key, uploadId })
  }
  return targets
}

/** All that can be seen: the answers to everything that only looks, asked by each caller who may. */
async function everything({ endpoint, proxy }: InProcess, targets: readonly Target[]): Promise<Record<string, string>> {
  const looks = proxy.operations.filter(({ operation }) => /^(GET|HEAD)$/.test(operation.on.method))
  const seen: Record<string, string> = {}
  const look = async (identity: Identity, name: string, wanted: Wanted) => {
    const { status, headers, body } = await signedRequest(endpoint, identity, wanted)
    const { etag, 'last-modified': modified } = headers
    const text = body.replace(/<(RequestId|HostId)>.*?<\/\1>/g, '')
    const place = `${identity.accessKeyId} ${name} ${wanted.path} ${JSON.stringify(wanted.query)}`
    seen[place] = JSON.stringify([status, etag, modified, text])
  }
  for (const { operation } of looks) {
    if (operation.on.resource === 'service') {
      if (operation.name === 'ListBuckets') await look(owner, 'ListBuckets', { method: 'GET', path: '/' })
      continue
    }
    const others = [
      { bucket: 'mallory-data', key: 'secret', uploadId: '' },
      { bucket: 'shared', key: 'mallory/secret', uploadId: '' },
    ]
    for (const target of [...targets, ...others]) {
      await look(owner, operation.name, requestFor(operation, target))
      await look(alice, operation.name, requestFor(operation, target))
    }
  }
  return seen
}

const REFUSED = /^(AccessDenied|NoSuchUpload)$/

function isRefused({ status, code }: TextAnswer, method: string): boolean {
  return method === 'HEAD' ? status === 403 : status >= 400 && REFUSED.test(code)
}

for (const mode of modes) {
  t.test(`${mode}: one identity gets at nothing of another's, by any operation`, async (t) => {
    const running = await startInProcess(t, mode, { identities: [owner, alice, mallory] })
    const { endpoint, proxy } = running
    const targets = await prepare(running)
    const before = await everything(running, targets)
    const ways = [
      ['signed', signedRequest],
      ['presigned', presignedRequest],
    ] as const

    for (const { operation } of proxy.operations) {
      const { name, on } = operation
      if (on.resource === 'service') continue
      for (const target of targets) {
        for (const [way, send] of ways) {
          if (target.bucket === 'shared' && on.resource === 'bucket' && OPEN_TO_PARTS.has(name)) continue
          const wanted = requestFor(operation, target)
          const answer = await send(endpoint, mallory, wanted)
          // Such an operation is for all callers and decides by itself, or for none; it must change nothing all the
          // same.
          if (operation.access === 'public' || refusedOperations.includes(operation)) continue
          const shown = `${answer.status} ${answer.code}`
          t.ok(isRefused(answer, on.method), `${way} ${name} of ${wanted.path}: ${shown}`)
          t.notMatch(answer.body, /secret of alice/)
          if (on.header !== 'x-amz-copy-source') continue
          const mine = { ...target, bucket: 'mallory-data', key: 'stolen' }
          const stolen = await send(endpoint, mallory, requestFor(operation, mine, `/${target.bucket}/${target.key}`))
          t.ok(isRefused(stolen, on.method), `${way} ${name} from ${wanted.path}: ${stolen.status} ${stolen.code}`)
          const planted = await send(endpoint, mallory, requestFor(operation, target, '/mallory-data/secret'))
          t.ok(isRefused(planted, on.method), `${way} ${name} to ${wanted.path}: ${planted.status} ${planted.code}`)
        }
      }
    }

    t.test('what a bucket that is shared shows of others', async (t) => {
      const ask = (query: Record<string, string>, identity = mallory) =>
        signedRequest(endpoint, identity, { method: 'GET', path: '/shared', query })
      const listings: Record<string, string>[] = [{}, { 'list-type': '2' }, { versions: '' }, { delimiter: '/' }]
      for (const query of listings) {
        const answer = await ask(query)
        t.equal(answer.status, 200)
        t.match(answer.body, 'mallory/')
        t.notMatch(answer.body, 'alice')
        t.match((await ask(query, owner)).body, /alice\/[\s\S]*mallory\//)
      }
      t.match(JSON.parse((await ask({ 'x-usage': '', format: 'json' })).body), { Objects: 1, Bytes: 28 })
      for (const prefix of ['alice/', 'alice/secret', 'b'])
        t.equal((await ask({ 'list-type': '2', prefix })).code, 'AccessDenied', prefix)
      const startAfter = await ask({ 'list-type': '2', 'start-after': 'a', 'max-keys': '1' })
      t.match(startAfter.body, '<Key>mallory/secret</Key>')
      t.match(startAfter.body, '<IsTruncated>false</IsTruncated>')
      t.notMatch((await ask({ uploads: '' })).body, '<Upload>')
      t.match((await ask({ uploads: '' }, owner)).body, '<Upload>', 'the account that owns the bucket may end them')
      t.match((await ask({ uploads: '' }, alice)).body, '<Upload>')

      const body = '<Delete><Object><Key>alice/secret</Key></Object><Object><Key>alice/none</Key></Object></Delete>'
      const removed = await signedRequest(endpoint, mallory, {
        method: 'POST',
        path: '/shared',
        query: { delete: '' },
        headers: contentMd5(body),
        body,
      })
      t.equal(removed.body.match(/<Code>AccessDenied<\/Code>/g)?.length, 2, removed.body)
    })

    const buckets = await signedRequest(endpoint, mallory, { method: 'GET', path: '/' })
    t.same(
      [...buckets.body.matchAll(/<Name>(.*?)</g)].map(([, name]) => name),
      ['mallory-data', 'shared'],
    )
    for (const path of ['/other', '/alice-data-2', '/shared'])
      t.equal((await signedRequest(endpoint, mallory, { method: 'PUT', path })).code, 'AccessDenied', `make ${path}`)
    t.equal((await signedRequest(endpoint, mallory, { method: 'HEAD', path: '/not-there' })).status, 403, 'not said')
    for (const key of ['mallory/../alice/secret', './alice/secret', 'mallory/..\\alice/secret']) {
      const path = `/shared/${key}`
      t.ok((await signedRequest(endpoint, mallory, { method: 'GET', path })).status >= 400, path)
      const { code } = await signedRequest(endpoint, mallory, { method: 'PUT', path, body: 'x' })
      // A gateway of files refuses such a key for everybody.
      t.match(code, mode === 'legacy' ? /^(AccessDenied|InvalidArgument)$/ : /^AccessDenied$/, path)
    }

    t.same(await everything(running, targets), before, 'nothing has changed')
  })
}

t.test('writing without reading, reading without writing', async (t) => {
  const writer: Identity = {
    ...{ accessKeyId: 'writer', secretAccessKey: 'writer-secret' },
    rights: [{ bucket: 'box', prefix: 'in/', access: 'write' }],
  }
  const reader: Identity = {
    ...{ accessKeyId: 'reader', secretAccessKey: 'reader-secret' },
    rights: [{ bucket: 'bo*', access: 'read' }],
  }
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner, writer, reader] })
  const by =
    (identity: Identity) =>
    (method: string, path: string, more: Partial<Wanted> = {}) =>
      signedRequest(endpoint, identity, { method, path, ...more })
  const [own, write, read] = [by(owner), by(writer), by(reader)]
  await own('PUT', '/box')
  for (const key of ['in/old', 'out']) await own('PUT', `/box/${key}`, { body: key })

  const { etag = '' } = (await write('PUT', '/box/in/new', { body: 'new' })).headers
  const source = { headers: { 'x-amz-copy-source': '/box/in/old' } }
  const begun = await write('POST', '/box/in/parts', { query: { uploads: '' } })
  const uploadId = /<UploadId>(.*?)</.exec(begun.body)?.[1] ?? ''
  const part = await write('PUT', '/box/in/parts', { query: { uploadId, partNumber: '1' }, body: 'part' })
  const list = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers.etag}</ETag></Part></CompleteMultipartUpload>`
  const tags = bodies.PutObjectTagging ?? ''
  const asked: [by: typeof write, method: string, path: string, more: Partial<Wanted>, code: string][] = [
    [write, 'PUT', '/box/in/new', { body: 'new', headers: { 'if-none-match': '*' } }, 'PreconditionFailed'],
    [write, 'PUT', '/box/in/new', { body: 'new', headers: { 'if-match': etag } }, ''],
    [write, 'PUT', '/box/in/none', { body: 'new', headers: { 'if-match': '"0"' } }, 'NoSuchKey'],
    [write, 'PUT', '/box/out', { body: 'new', headers: { 'if-none-match': '*' } }, 'AccessDenied'],
    [write, 'GET', '/box/in/old', {}, 'AccessDenied'],
    [write, 'GET', '/box/in/none', {}, 'AccessDenied'],
    [write, 'GET', '/box/in/old', { query: { tagging: '' } }, 'AccessDenied'],
    [write, 'GET', '/box', { query: { prefix: 'in/' } }, 'AccessDenied'],
    [write, 'GET', '/box', { query: { versions: '' } }, 'AccessDenied'],
    [write, 'PUT', '/box/in/copy', source, 'AccessDenied'],
    [write, 'PUT', '/box/in/parts', { query: { uploadId, partNumber: '2' }, ...source }, 'AccessDenied'],
    [write, 'POST', '/box/in/parts', { query: { uploadId }, body: list }, ''],
    [write, 'DELETE', '/box/in/old', {}, ''],
    [write, 'DELETE', '/box', {}, 'AccessDenied'],
    [read, 'GET', '/box/out', {}, ''],
    [read, 'GET', '/box', {}, ''],
    [read, 'PUT', '/box/out', { body: 'x' }, 'AccessDenied'],
    [read, 'PUT', '/box/new', { headers: { 'x-amz-copy-source': '/box/out' } }, 'AccessDenied'],
    [read, 'PUT', '/box/out', { query: { tagging: '' }, body: tags }, 'AccessDenied'],
    [read, 'PUT', '/box', { query: { tagging: '' }, body: tags }, 'AccessDenied'],
    [read, 'POST', '/box/out', { query: { uploads: '' } }, 'AccessDenied'],
    [read, 'DELETE', '/box/out', {}, 'AccessDenied'],
    [read, 'PUT', '/bottle', {}, 'AccessDenied'],
  ]
  for (const [send, method, path, more, code] of asked)
    t.equal((await send(method, path, more)).code, code, `${method} ${path} ${JSON.stringify(more)}`)
  t.equal((await own('GET', '/box/in/parts')).body, 'part')
  t.equal((await own('GET', '/box/out')).body, 'out')
})

t.test('a class that is paid for, and a restore, need the right to the key and the action', async (t) => {
  const right = { bucket: 'box', prefix: 'in/', access: 'readwrite' } as const
  const limited = (name: string, more: Partial<Identity> = {}): Identity => ({
    ...{ accessKeyId: name, secretAccessKey: `${name}-secret`, rights: [right] },
    ...more,
  })
  const payer = limited('payer', { actions: ['attic:*'] })
  const guest = limited('guest')
  const keeper = limited('keeper', { rights: [{ bucket: 'box', access: 'readwrite' }] })
  const admitted: string[] = []
  const attic: Plugin = {
    name: 'attic',
    operations: [],
    storageClasses: [
      {
        name: 'GLACIER',
        action: 'attic:Keep',
        async admit({ key }) {
          admitted.push(key)
          return { archive: { storageClass: 'GLACIER' }, stored: async () => ({}), dropped: async () => {} }
        },
        transition: async () => false,
      },
    ],
  }
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner, payer, guest, keeper], plugins: [attic] })
  const send = (identity: Identity, method: string, path: string, more: Partial<Wanted> = {}) =>
    signedRequest(endpoint, identity, { method, path, ...more })
  await send(owner, 'PUT', '/box')
  for (const key of ['in/old', 'out/old']) await send(owner, 'PUT', `/box/${key}`, { body: 'old' })

  const archived = { 'x-amz-storage-class': 'GLACIER' }
  const ways: [string, Partial<Wanted>][] = [
    ['PUT', { body: 'new', headers: archived }],
    ['PUT', { headers: { ...archived, 'x-amz-copy-source': '/box/in/old' } }],
    ['POST', { query: { uploads: '' }, headers: archived }],
  ]
  for (const [method, more] of ways) {
    t.equal((await send(payer, method, '/box/out/old', more)).code, 'AccessDenied', `${method} of another key`)
    t.equal((await send(guest, method, '/box/in/old', more)).code, 'AccessDenied', `${method} without the action`)
  }
  t.same(admitted, [], 'the plugin was not even asked')
  for (const [method, more] of ways) t.equal((await send(payer, method, '/box/in/old', more)).status, 200)
  t.same(admitted, ['in/old', 'in/old', 'in/old'])

  const body =
    '<LifecycleConfiguration><Rule><ID>a</ID><Status>Enabled</Status><Filter/><Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule></LifecycleConfiguration>'
  const rules = { query: { lifecycle: '' }, body }
  t.equal((await send(keeper, 'PUT', '/box', rules)).code, 'AccessDenied', 'a rule pays as well')
  t.equal((await send(owner, 'PUT', '/box', rules)).status, 200)

  const restore = { query: { restore: '' } }
  t.equal((await send(guest, 'POST', '/box/out/old', restore)).code, 'AccessDenied')
  t.equal((await send(guest, 'POST', '/box/in/old', restore)).status, 200, 'to have something back costs nothing')
})
