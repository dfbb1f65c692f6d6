import t, { type Test } from 'tap'
import { bytes, contentMd5 } from '../../support/content/content.js'
import { Between, type Passed } from '../../support/gateway/between.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { startInProcess } from '../../support/server/in-process.js'
import { type Mode, modes } from '../../support/server/modes.js'
import { type Answer, type Sending, send, targetOf } from '../../support/sign/send.js'

/**
 * The requests at the gateway that one request of S3 causes once tokens are there: calls by their names, and `upload`,
 * `download` and `head` for the requests of REST. After a semicolon stands why there is more than one, with the number
 * of the promise of docs/design.md. `legacy` is a public gateway: it describes an object in listings alone, and none
 * that this server has on record there.
 */
const TABLE: Readonly<Record<string, Readonly<Record<Mode, string>>>> = {
  GetObject: { full: 'download', legacy: 'download' },
  'GetObject, 300 kB': { full: 'download', legacy: 'download' },
  'GetObject, a range': { full: 'download', legacy: 'download' },
  'GetObject, stored by others': {
    full: 'download',
    legacy: 'ListObjects download ListObjects; 4: compared with the listing, and again within the second of the write',
  },
  HeadObject: { full: 'head', legacy: 'download' },
  'HeadObject, stored by others': {
    full: 'head',
    legacy: 'ListObjects download ListObjects; 5: only a download has metadata; 4',
  },
  'HeadObject, 300 kB': { full: 'head', legacy: 'ListObjects' },
  GetObjectAttributes: { full: 'head', legacy: 'download' },
  GetObjectTagging: { full: 'ListBuckets head; 16: tags are for the owner', legacy: 'ListBuckets download; 16' },
  'PutObject, new': { full: 'upload', legacy: 'upload ListObjects download; 5: time and mark of the write' },
  'PutObject, again': { full: 'upload', legacy: 'upload ListObjects download; 5' },
  'PutObject, 300 kB': {
    full: 'FenceUpload upload; 13: the fence, known after the body',
    legacy: 'upload ListObjects download ListObjects; 5: whose mark it is, as bytes beyond 64 KiB are not compared',
  },
  'PutObject, If-Match': {
    full: 'head head upload; 14: once before the body, once under the lock',
    legacy: 'download download upload ListObjects download; 14 and 5',
  },
  CopyObject: {
    full: 'head download upload; 4: the copy is compared with what was found',
    legacy: 'download download upload ListObjects download; 4 and 5',
  },
  DeleteObject: { full: 'RemoveObject', legacy: 'RemoveObject' },
  'DeleteObjects, 2 keys': {
    full: 'ListObjects RemoveObject RemoveObject; 12: an error for a bucket, 3: a call for each key',
    legacy: 'ListObjects RemoveObject RemoveObject; 12 and 3',
  },
  'ListObjectsV2, first page': { full: 'ListObjects', legacy: 'ListObjects ListObjects; 6: one for each folder' },
  'ListObjectsV2, next page': { full: 'ListObjects', legacy: '' },
  'ListObjectsV2, a delimiter': { full: 'ListObjects', legacy: 'ListObjects' },
  ListBuckets: { full: 'ListBuckets', legacy: 'ListBuckets' },
  HeadBucket: { full: 'ListObjects', legacy: 'ListObjects' },
  CreateBucket: { full: 'MakeBucket ListBuckets; 5: its time', legacy: 'MakeBucket ListBuckets; 5' },
  UploadPart: { full: '', legacy: '' },
  ListParts: { full: '', legacy: '' },
  CompleteMultipartUpload: {
    full: 'ListBuckets head FenceUpload upload; 16, 7: an earlier attempt, 13',
    legacy: 'ListObjects upload ListObjects download ListObjects; 7 and 5',
  },
}

/** What the first request of a server needs beside; of a download, also the token of its address. */
const COLD = ['Login', 'ServerInfo']
const TOKEN = 'CreateURLToken'
/** The state store reports itself once to a gateway that remembers stores, beside all requests. */
const BESIDE = 'StateEpoch'

const SMALL = bytes('small', 1000)
const LARGE = bytes('large', 300_000)
function nameOf({ method, path, body }: Passed): string {
  if (path.endsWith('/webrpc')) return String(JSON.parse(body.toString()).method).replace(/^web\./, '')
  return method === 'HEAD' ? 'head' : (path.split('/')[2] ?? '')
}

/** What some of the requests continue. */
interface Prepared {
  readonly uploadId: string
  readonly etag: string
  readonly token: string
}

/** The requests of S3 by the names of the table. */
function requests(ask: (sending: Sending) => Promise<Answer>, { uploadId, etag, token }: Prepared) {
  const on =
    (method: string, key: string, query = '', more: Partial<Sending> = {}) =>
    () =>
      ask({ method, target: key === '' ? `/box${query}` : targetOf('box', key, query), ...more })
  const headers = (of: Record<string, string>) => ({ headers: of })
  const two = Buffer.from('<Delete><Object><Key>gone/1</Key></Object><Object><Key>gone/2</Key></Object></Delete>')
  const parts = `<Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part>`
  const complete = Buffer.from(`<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`)
  return {
    GetObject: on('GET', 'small'),
    'GetObject, 300 kB': on('GET', 'large'),
    'GetObject, a range': on('GET', 'large', '', headers({ range: 'bytes=5-9' })),
    'GetObject, stored by others': on('GET', 'theirs'),
    HeadObject: on('HEAD', 'small'),
    'HeadObject, stored by others': on('HEAD', 'theirs'),
    'HeadObject, 300 kB': on('HEAD', 'large'),
    GetObjectAttributes: on('GET', 'small', 'attributes=', headers({ 'x-amz-object-attributes': 'ETag' })),
    GetObjectTagging: on('GET', 'small', 'tagging='),
    'PutObject, new': on('PUT', 'new', '', { body: SMALL }),
    'PutObject, again': on('PUT', 'new', '', { body: SMALL }),
    'PutObject, 300 kB': on('PUT', 'new-large', '', { body: LARGE }),
    'PutObject, If-Match': on('PUT', 'new', '', { body: SMALL, ...headers({ 'if-match': '*' }) }),
    CopyObject: on('PUT', 'copy', '', headers({ 'x-amz-copy-source': '/box/small' })),
    DeleteObject: on('DELETE', 'copy'),
    'DeleteObjects, 2 keys': on('POST', '', '?delete', { body: two, headers: contentMd5(two) }),
    'ListObjectsV2, first page': on('GET', '', '?list-type=2&max-keys=2'),
    'ListObjectsV2, next page': on('GET', '', `?list-type=2&max-keys=2&continuation-token=${token}`),
    'ListObjectsV2, a delimiter': on('GET', '', '?list-type=2&delimiter=/'),
    ListBuckets: () => ask({ method: 'GET', target: '/' }),
    HeadBucket: on('HEAD', ''),
    CreateBucket: () => ask({ method: 'PUT', target: '/another-box' }),
    UploadPart: on('PUT', 'folder/multi', `partNumber=2&uploadId=${uploadId}`, { body: LARGE }),
    ListParts: on('GET', 'folder/multi', `uploadId=${uploadId}`),
    CompleteMultipartUpload: on('POST', 'folder/multi', `uploadId=${uploadId}`, { body: complete }),
  }
}

for (const mode of modes) {
  t.test(mode, async (t) => {
    const server = await startInProcess(t, mode)
    const between = await Between.start(t, server.gateway)
    const gateway = { url: between.url, account: server.gateway.account }
    await server.restart({ gateway })
    const endpoint = { endpoint: server.endpoint, region: 'us-east-1', accessKey: 'test-key', secretKey: 'test-secret' }
    const ask = async (sending: Sending): Promise<Answer> => {
      const answer = await send(endpoint, sending)
      if (answer.status >= 300) throw new Error(`${sending.method} ${sending.target}: ${answer.status} ${answer.code}`)
      return answer
    }
    const traced = async (run: () => Promise<unknown>): Promise<string[]> => {
      const before = between.requests.length
      await run()
      return between.requests
        .slice(before)
        .map(nameOf)
        .filter((name) => name !== BESIDE)
    }
    const all = requests(ask, await prepare(ask, new GatewayUser(server.gateway)))
    await t.test('warm', (t) => warm(t, mode, all, traced))
    for (const name of [
      'GetObject',
      'HeadObject',
      'PutObject, again',
      'ListBuckets',
      'ListObjectsV2, a delimiter',
    ] as const)
      await t.test(`cold, ${name}`, async (t) => {
        await server.restart({ gateway })
        const expected = expectedOf(name, mode)
        const tokens = expected.some((each) => each === 'download' || each === 'head') ? [TOKEN] : []
        t.same((await traced(all[name])).sort(), [...COLD, ...tokens, ...expected].sort())
      })
  })
}

function expectedOf(name: string, mode: Mode): string[] {
  return (TABLE[name]?.[mode].split(';')[0] ?? '').split(' ').filter(Boolean)
}

async function warm(
  t: Test,
  mode: Mode,
  all: ReturnType<typeof requests>,
  traced: (run: () => Promise<unknown>) => Promise<string[]>,
): Promise<void> {
  t.same(Object.keys(all), Object.keys(TABLE), 'the table has all')
  // The tokens, and the facts of the gateway.
  await all.GetObject()
  for (const [name, run] of Object.entries(all)) t.same(await traced(run), expectedOf(name, mode), name)
  for (const name of ['GetObject', 'HeadObject']) t.equal(expectedOf(name, mode).length, 1, `${name}: one request`)
}

async function prepare(ask: (sending: Sending) => Promise<Answer>, other: GatewayUser): Promise<Prepared> {
  const put = (key: string, body: Buffer, query = '') =>
    ask({ method: 'PUT', target: targetOf('box', key, query), body })
  const textOf = async (method: string, target: string, pattern: RegExp) =>
    pattern.exec((await ask({ method, target })).body.toString())?.[1] ?? ''
  await ask({ method: 'PUT', target: '/box' })
  for (const key of ['folder/1', 'folder/2', 'folder/3', 'gone/1', 'gone/2', 'small']) await put(key, SMALL)
  await put('large', LARGE)
  await other.login()
  await other.put('box', 'theirs', SMALL)
  const uploadId = await textOf('POST', targetOf('box', 'folder/multi', 'uploads='), /<UploadId>([^<]+)/)
  const { etag = '' } = (await put('folder/multi', LARGE, `partNumber=1&uploadId=${uploadId}`)).headers
  const page = await textOf('GET', '/box?list-type=2&max-keys=2', /<NextContinuationToken>([^<]+)/)
  return { uploadId, etag, token: encodeURIComponent(page) }
}
