import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { presignQuery } from '../../../common/sigv4.js'
import { ArchiveDownload, type Order } from '../../../plugins/zip/archive.js'
import { Paths, Room } from '../../../plugins/zip/room.js'
import { check } from '../../../plugins/zip/walk.js'
import { createKeyFile } from '../../../src/objects/encryption/key-file.js'
import { S3Error } from '../../../src/plugin.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { findClient, run } from '../../support/programs/run.js'
import { startInProcess } from '../../support/server/in-process.js'
import { type Endpoint, send, UNSIGNED_PAYLOAD } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

/** Archives over HTTP, and by whose rights they are made. */

const Bucket = 'photos'
const MiB = 1024 * 1024
const owner = { accessKeyId: 'owner-key', secretAccessKey: 'owner-secret' }
const other = { accessKeyId: 'other-key', secretAccessKey: 'other-secret' }
const guest = {
  ...{ accessKeyId: 'guest-key', secretAccessKey: 'guest-secret' },
  rights: [{ bucket: Bucket, prefix: 'open/', access: 'read' as const }],
}
const narrow = {
  ...{ accessKeyId: 'narrow-key', secretAccessKey: 'narrow-secret' },
  policies: [
    {
      Version: '2012-10-17',
      Statement: [
        { Effect: 'Allow', Action: ['s3:GetObject', 's3:ListBucket'], Resource: '*' },
        { Effect: 'Deny', Action: 's3:GetObject', Resource: `arn:aws:s3:::${Bucket}/open/secret` },
      ],
    },
  ],
}

const python = await findClient(t, 'python3')
const READ = `
import json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
print(json.dumps({name: archive.read(name).decode('latin-1') for name in archive.namelist()}))`

t.test('archives over HTTP', async (t) => {
  const folder = temporaryFolder(t)
  const encryptionKeys = join(folder, 'keys')
  await createKeyFile(encryptionKeys)
  const identities = [owner, other, guest, narrow]
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities, encryptionKeys })
  const as = ({ accessKeyId, secretAccessKey }: typeof owner = owner) => ({
    ...{ endpoint, accessKey: accessKeyId, secretKey: secretAccessKey, region: 'us-east-1' },
  })
  const get = (query: string, who = owner) => send(as(who), { method: 'GET', target: `/${Bucket}?${query}` })
  const post = (body: object, who = owner, query = 'x-zip=') =>
    send(as(who), { method: 'POST', target: `/${Bucket}?${query}`, body: Buffer.from(JSON.stringify(body)) })
  /** The entries of an archive with their contents. */
  const entriesOf = async (body: Buffer): Promise<Record<string, string>> => {
    const file = join(folder, `${randomBytes(6).toString('hex')}.zip`)
    writeFileSync(file, body)
    return JSON.parse(String(await run(python ?? '', ['-c', READ, file])))
  }
  await s3.createBucket({ Bucket })
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })
  const put = (Key: string, Body: string, more = {}) => s3.putObject({ Bucket, Key, Body, ...more })
  const first = await put('open/a.txt', 'first')
  await put('open/a.txt', 'second')
  await put('open/sub/b', 'b'.repeat(100_000))
  await put('open/secret', 'secret')
  await put('open/', '')
  await put('other/c', 'c')
  await put('sealed/s', 'sealed', { ServerSideEncryption: 'AES256' })
  await put('../up', 'up')

  if (python)
    await t.test('of folders, keys and versions', async (t) => {
      const answer = await get('folder=open%2F&name=My%20photos&prefix=open%2F&prefix=open%2Fsub%2F&x-zip=')
      t.match(answer, { status: 200, headers: { 'content-type': 'application/zip' } })
      t.equal(answer.headers['content-disposition'], "attachment; filename*=UTF-8''My%20photos.zip")
      t.same(await entriesOf(answer.body), { 'a.txt': 'second', secret: 'secret', 'sub/b': 'b'.repeat(100_000) })
      const all = await post({ Prefixes: [''], Level: 9 })
      t.ok(all.body.length < 50_000, 'deflated')
      t.same(Object.keys(await entriesOf(all.body)), [
        '__/up',
        'open/',
        'open/a.txt',
        'open/secret',
        'open/sub/b',
        'other/c',
        'sealed/s',
      ])
      t.same(await entriesOf((await get('key=sealed%2Fs&x-zip=')).body), { 'sealed/s': 'sealed' }, 'decrypted')
      const { VersionId = '' } = first
      const chosen = await post({
        Keys: ['other/c', 'open/a.txt', 'other/c'],
        Versions: [{ Key: 'open/a.txt', VersionId }],
      })
      t.same(await entriesOf(chosen.body), { 'other/c': 'c', 'open/a.txt': 'second', 'open/a (2).txt': 'first' })
    })

  await t.test('by a presigned URL, for a session, and by the id of a kept selection', async (t) => {
    const kept = await post({ Prefixes: ['open/'] }, owner, 'format=json&x-zip-selection=')
    const { SelectionId, Objects, Bytes, Expires } = JSON.parse(String(kept.body))
    t.match({ Objects, Bytes }, { Objects: 4, Bytes: 100_012 }, 'it says what the archive will have')
    t.ok(Date.parse(Expires) > Date.now())
    const query = presignQuery({
      ...{ brand: 'Amz', method: 'GET', path: `/${Bucket}`, host: new URL(endpoint).host, region: 'us-east-1' },
      ...{
        ...owner,
        expires: 60,
        now: new Date(),
        query: [
          ['selection', SelectionId],
          ['x-zip', ''],
        ] as [string, string][],
      },
    })
    const answer = await fetch(`${endpoint}/${Bucket}?${query}`)
    t.equal(answer.status, 200)
    t.equal(Buffer.from(await answer.arrayBuffer()).readUInt32LE(0), 0x04034b50)
    const forged = await fetch(`${endpoint}/${Bucket}?${query.replace(SelectionId, 'f'.repeat(32))}`)
    t.equal(forged.status, 403, 'the signature covers the selection')
    const stolen = await get(`selection=${SelectionId}&x-zip=`, other)
    t.match(stolen, { status: 404, code: 'NoSuchSelection' }, 'the id alone opens nothing for another key pair')
    t.match(await get(`prefix=x&selection=${SelectionId}&x-zip=`), { status: 400, code: 'InvalidArgument' })
    const session = await sessionOf(as())
    const others = { method: 'GET', target: `/${Bucket}?selection=${SelectionId}&x-zip=`, headers: session.headers }
    t.match(await send(session, others), { status: 404 }, 'nor for a session of the same key pair')
    const own = { method: 'GET', target: `/${Bucket}?key=other%2Fc&x-zip=`, headers: session.headers }
    t.match(await send(session, own), { status: 200 }, 'a session has archives, too')
    for (let i = 0; i < 4; i++) await post({ Keys: ['other/c'] }, owner, 'x-zip-selection=')
    t.equal((await get(`selection=${SelectionId}&x-zip=`)).status, 404, 'a key pair has the last four')
  })

  await t.test('what the caller may not read is refused before the first byte', async (t) => {
    const { status, code, message } = await get('prefix=open%2F&x-zip=', narrow as typeof owner)
    t.match({ status, code, message }, { status: 403, code: 'AccessDenied', message: /^open\/secret: / })
    t.equal((await get('prefix=open%2Fsub&x-zip=', narrow as typeof owner)).status, 200)
    t.equal((await get('prefix=open%2F&x-zip=', guest)).status, 200)
    for (const body of [
      { Keys: ['other/c'] },
      { Prefixes: ['other/'] },
      { Prefixes: [''] },
      { Keys: ['open/a.txt', '../up'] },
    ]) {
      const refused = await post(body, guest)
      // A listing shows a guest what it may read: of these prefixes the one has nothing, the other what is open.
      if (body.Prefixes?.[0] === '') t.notMatch(refused.body.toString('latin1'), /other|up/)
      else t.match(refused, { status: /40[34]/, code: /AccessDenied|NoSuchKey/ }, JSON.stringify(body))
    }
    t.equal((await fetch(`${endpoint}/${Bucket}?x-zip=&prefix=open/`)).status, 403, 'nobody without a signature')
  })

  await t.test('requests that name nothing, too much, or nonsense', async (t) => {
    const many = Array.from({ length: 1001 }, (_, i) => `k${i}`)
    for (const body of [
      {},
      { Keys: [] },
      { Keys: many },
      { Keys: [''] },
      { Keys: 'x' },
      { What: 1 },
      { Keys: ['a'], Level: 11 },
      [],
    ])
      t.match(await post(body), { status: 400, code: 'InvalidArgument' }, JSON.stringify(body).slice(0, 40))
    t.match(await get('x-zip='), { status: 400, code: 'InvalidArgument' })
    t.match(await get('level=fast&prefix=&x-zip='), { status: 400, code: 'InvalidArgument' })
    t.match(await get('key=other%2Fnone&x-zip='), { status: 404, code: 'NoSuchKey', message: /^other\/none: / })
    t.match(await get('prefix=none%2F&x-zip='), { status: 404, code: 'NoSuchKey' })
    const body = Buffer.from('{"Prefixes":[""]}')
    const loose = { method: 'POST', target: `/${Bucket}?x-zip=`, body, payloadHash: UNSIGNED_PAYLOAD }
    t.match(await send(as(), loose), { status: 403, code: 'AccessDenied' }, 'a body that is not signed')
    t.match(await send(as(), { method: 'GET', target: '/nowhere?prefix=&x-zip=' }), {
      status: 404,
      code: 'NoSuchBucket',
    })
  })

  await t.test('objects with a key of the client are named, and no archive is made', async (t) => {
    const key = randomBytes(32)
    const customer = {
      ...{ SSECustomerAlgorithm: 'AES256', SSECustomerKey: key.toString('base64') },
      SSECustomerKeyMD5: createHash('md5').update(key).digest('base64'),
    }
    await put('locked/x', 'x', customer)
    const { status, code, message } = await get('prefix=locked%2F&x-zip=')
    t.match({ status, code, message }, { status: 400, code: 'InvalidRequest', message: /keys of clients.*locked\/x/ })
  })
})

/** The endpoint for a session of the key pair, and the headers that its requests have. */
async function sessionOf(server: Endpoint) {
  const body = Buffer.from('Action=GetSessionToken&Version=2011-06-15')
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const answer = await send(server, { method: 'POST', target: '/', body, headers: type })
  const member = (name: string) => new RegExp(`<${name}>([^<]+)<`).exec(String(answer.body))?.[1] ?? ''
  const keys = { accessKey: member('AccessKeyId'), secretKey: member('SecretAccessKey') }
  return { ...server, ...keys, headers: { 'x-amz-security-token': member('SessionToken') } }
}

/** The signature of the record that ends an archive, as latin-1. */
const DIRECTORY_END = 'PK\u0005\u0006'

/** A listed object of the scripted store. */
const listed = (key: string, more = {}) => ({ bucket: Bucket, key, size: 3, cold: false, ...more })

function scripted(objects: readonly ReturnType<typeof listed>[]) {
  const page = async (_: string, { after = '' }) => {
    const rest = objects.filter(({ key }) => key > after)
    return { objects: rest.slice(0, 2), truncated: rest.length > 2 }
  }
  return {
    authorizer: { decide: async () => {} },
    checks: { requireKey: () => {} },
    store: { listObjects: page, head: async (_: string, key: string) => listed(key) },
  } as unknown as ConstructorParameters<typeof ArchiveDownload>[1]
}

const ofAll = { objects: [], prefixes: [''], folder: '', level: 0 }
const { signal } = new AbortController()

t.test('objects whose bytes are in an archive are named', async (t) => {
  const cold = Array.from({ length: 7 }, (_, i) => listed(`cold-${i}`, { cold: true }))
  await t.rejects(check(scripted([listed('a'), ...cold]), Bucket, ofAll, signal), {
    ...{ code: 'InvalidObjectState', status: 403 },
    message: /restore them first.*cold-0, cold-1, cold-2, cold-3, cold-4, and 2 more/,
  })
  t.match(await check(scripted([listed('a'), listed('b'), listed('c')]), Bucket, ofAll, signal), {
    objects: 3,
    bytes: 9,
  })
})

const room = new Room()

/** Takes an archive whose objects are answered with these bodies or errors, as the connection of a client does. */
function taking(answers: Record<string, string | Error>, selection: Order['selection'] = ofAll) {
  const asked: string[] = []
  const logged: unknown[] = []
  const perform: Order['perform'] = async (_, { key = '' }) => {
    asked.push(key)
    const answer = answers[key] ?? ''
    if (answer instanceof Error) throw answer
    const lend = async (sink: (chunk: Buffer, done: (error?: unknown) => void) => void) =>
      new Promise<void>((resolve, reject) =>
        sink(Buffer.from(answer), (error) => (error === undefined ? resolve() : reject(error))),
      )
    const headers = { 'content-length': String(answer.length), 'last-modified': new Date(0).toUTCString() }
    return { status: 200, headers, body: { download: { lend, discard: () => {} } } }
  }
  const log = { warn: (line: unknown) => logged.push(line) } as unknown as Order['log']
  const client = { remoteAddress: '', secure: false, host: '' }
  const order = { bucket: Bucket, selection, owner: { accessKeyId: 'a', client }, perform, log, held: room.hold(0) }
  return {
    asked,
    logged,
    download: new ArchiveDownload(order, scripted(Object.keys(answers).map((key) => listed(key)))),
  }
}

t.test('an archive that cannot go on never looks complete', async (t) => {
  const chunks: Buffer[] = []
  const take = (chunk: Buffer, done: () => void) => {
    chunks.push(Buffer.from(chunk))
    done()
  }
  const gone = taking({ a: 'aaa', b: new S3Error('NoSuchKey'), c: 'ccc' })
  await gone.download.lend(take)
  t.match(
    Buffer.concat(chunks).toString('latin1'),
    new RegExp(`aaa.*ccc.*${DIRECTORY_END}`, 's'),
    'one that was deleted since is left out of a folder',
  )
  t.same(gone.logged, [])
  for (const [name, broken] of [
    [
      'a key that was named',
      taking({ a: new S3Error('NoSuchKey') }, { ...ofAll, prefixes: [], objects: [{ key: 'a' }] }),
    ],
    ['a right that was lost', taking({ a: 'aaa', b: new S3Error('AccessDenied') })],
    ['a gateway that fails', taking({ a: 'aaa', b: new S3Error('ServiceUnavailable') })],
  ] as const) {
    chunks.length = 0
    await t.rejects(broken.download.lend(take), S3Error, name)
    t.notMatch(Buffer.concat(chunks).toString('latin1'), new RegExp(DIRECTORY_END), 'the directory is never sent')
    t.equal(broken.logged.length, 1, 'and the log says why')
  }
})

t.test('a client that does not read stops the reading, and one that leaves ends it', async (t) => {
  const big = Object.fromEntries(
    Array.from({ length: 50 }, (_, i) => [`k${String(i).padStart(2, '0')}`, 'x'.repeat(20_000)]),
  )
  const { asked, logged, download } = taking(big)
  let waiting: ((error?: unknown) => void) | undefined
  const taken = download.lend((_, done) => {
    waiting = done
  })
  await until('the first chunk is sent', () => waiting !== undefined)
  const before = asked.length
  await new Promise((resolve) => setImmediate(resolve))
  t.ok(before < 15 && asked.length === before, `${before} objects were read for a client that takes nothing`)
  download.discard()
  waiting?.(new Error('the socket has ended'))
  await t.rejects(taken)
  const reset = taking(big)
  await t.rejects(reset.download.lend((_, done) => done(new Error('write ECONNRESET'))))
  t.same([...logged, ...reset.logged], [], 'a client that leaves is nobody’s failure')
})

t.test('what paths take in memory is bounded, for one archive and for all', async (t) => {
  const deep = (i: number) => `${String(i).padStart(5, '0')}/${'a/'.repeat(508)}x`
  const paths = new Paths()
  paths.add('a/b/c')
  const first = paths.length
  paths.add('a/b/d')
  t.equal(paths.length, first + 5 + 64, 'a folder counts once')
  const many = Array.from({ length: 200 }, (_, i) => listed(deep(i)))
  const tooMany = { ...{ code: 'InvalidRequest' }, message: /at most 33554432 characters together/ }
  await t.rejects(check(scripted(many), Bucket, ofAll, signal), tooMany, '200 keys of 1,024 bytes have 100,000 folders')
  const grown = taking(Object.fromEntries(many.map(({ key }) => [key, ''])))
  await t.rejects(
    grown.download.lend((_, done) => done()),
    tooMany,
    'nor does an archive get them while it is sent',
  )

  const all = new Room()
  const held = [all.hold(30 * MiB), all.hold(30 * MiB)]
  t.throws(() => all.hold(5 * MiB), { code: 'SlowDown', headers: { 'retry-after': '30' } })
  t.throws(() => held[0]?.grow(35 * MiB), { code: 'SlowDown' })
  held[0]?.release()
  held[0]?.release()
  held[0]?.grow(60 * MiB)
  held[1]?.grow(34 * MiB)
  t.throws(() => all.hold(31 * MiB), { code: 'SlowDown' }, 'room is given back once')
  all.hold(30 * MiB)
})

t.test('looking at many objects leaves others their turn', async (t) => {
  const objects = Array.from({ length: 400 }, (_, i) => listed(`k${String(i).padStart(3, '0')}`))
  const running = { now: 0, most: 0 }
  const authorizer = {
    decide: async ({ action }: { action: string }) => {
      if (action !== 's3:GetObject') return
      running.most = Math.max(running.most, ++running.now)
      await Promise.resolve()
      running.now--
    },
  }
  const listObjects = async () => ({ objects, truncated: false })
  const context = { ...scripted([]), authorizer, store: { listObjects } } as unknown as Parameters<typeof check>[0]
  let turns = 0
  let over = false
  const others = (async () => {
    while (!over) {
      await new Promise((resolve) => setImmediate(resolve))
      turns++
    }
  })()
  await Promise.all(Array.from({ length: 40 }, () => check(context, Bucket, ofAll, signal)))
  over = true
  await others
  t.ok(turns >= 40, `${turns} turns while 16,000 objects were looked at`)
  t.ok(running.most <= 64, `${running.most} at the same time`)
})
