import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import t, { type Test } from 'tap'
import { createLogger } from '../../../common/log.js'
import type { State } from '../../../src/api/state.js'
import type { CompletedUpload } from '../../../src/api/uploads.js'
import { openState } from '../../../src/state/open-state.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { lastingPort } from '../../support/server/ports.js'
import { heldLock, objectRecord, partRecord, putPart, readPart, uploadRecord } from './samples.js'
import { postgres, redis } from './servers.js'

const log = createLogger({ level: 'silent' })
const HOUR = 60 * 60 * 1000

function filesOf(data: string, uploadId: string): string[] {
  const folder = join(data, 'staging', uploadId)
  return existsSync(folder) ? readdirSync(folder) : []
}

function completedOf(uploadId: string): CompletedUpload {
  return { uploadId, bucket: 'photos', key: 'big', accessKeyId: 'AKID', etag: 'abc-1', request: 'r' }
}

/** What every State promises, wherever its records are. */
async function contract(t: Test, open: (data: string, now?: () => number) => Promise<State>) {
  const data = temporaryFolder(t)
  let shift = 0
  const state = await open(data, () => Date.now() + shift)
  t.teardown(() => state.close())
  const { objects, uploads } = state

  await t.test('object records', async (t) => {
    t.equal(await objects.get('b', 'k'), undefined)
    const keys = ['k', 'a/b', ' ', ':x:', `${'é'.repeat(500)}`, '\u{1f600}', 'nul\0in', "quote'", '%', '__proto__']
    await Promise.all(keys.map((key) => objects.set(objectRecord('b', key), heldLock())))
    for (const key of keys) t.same(await objects.get('b', key), objectRecord('b', key), JSON.stringify(key))
    t.same(
      (await objects.getMany('b', ['none', ...keys, 'k'])).map((record) => record?.key),
      [undefined, ...keys, 'k'],
    )
    t.same(await objects.getMany('b', []), [])
    t.equal(await objects.get('b2', 'k'), undefined, 'another bucket')
    const full = objectRecord('b', 'k', {
      checksum: { algorithm: 'CRC32', value: 'AAAAAA==-2', type: 'COMPOSITE' },
      partSizes: [
        [5_242_880, 9999],
        [1, 1],
      ],
    })
    await objects.set(full, heldLock())
    t.same(await objects.get('b', 'k'), full, 'replaced')
    await objects.delete('b', 'k', heldLock())
    await objects.delete('b', 'k', heldLock())
    t.equal(await objects.get('b', 'k'), undefined, 'deleted')
    t.ok(await objects.get('b', 'a/b'), 'and nothing else')
  })

  await t.test('a write that arrives late never replaces that of a later holder of the lock', async (t) => {
    const of = (key: string, fence: number) =>
      objectRecord('f', key, { fence, tags: [{ key: 'by', value: `${fence}` }] })
    await objects.set(of('k', 5), heldLock(5))
    const late = { message: /the lock is lost: 5/ }
    await t.rejects(objects.set(objectRecord('f', 'k'), heldLock(4)), late)
    await t.rejects(objects.delete('f', 'k', heldLock(4)), late)
    t.same(await objects.get('f', 'k'), of('k', 5))
    await objects.set(of('k', 5), heldLock(5))
    await objects.set(of('k', 1_800_000_000_000_007), heldLock(1_800_000_000_000_007))
    await t.rejects(objects.set(of('k', 6), heldLock(1_800_000_000_000_006)), { message: /1800000000000007/ })
    let fence = 7
    const setBack = {
      ...heldLock(),
      get fence() {
        return fence
      },
      raise: async (beyond: number) => {
        fence = beyond + 1
      },
    }
    await objects.set(of('k', 7), setBack)
    t.match(await objects.get('f', 'k'), { fence: 1_800_000_000_000_008 }, 'a clock was set back, the lock is held')
    await objects.delete('f', 'k', heldLock(1_800_000_000_000_009))
    t.equal(await objects.get('f', 'k'), undefined)

    // Every folder object has the same revision: a late record would bring a removed one back.
    await objects.delete('f', 'folder/', heldLock(9))
    await t.rejects(objects.set(of('folder/', 8), heldLock(8)), { message: /the lock is lost: 9/ })
    t.equal(await objects.get('f', 'folder/'), undefined)
    t.same(await objects.getMany('f', ['folder/']), [undefined])
    await objects.set(of('folder/', 10), heldLock(10))
    t.same(await objects.get('f', 'folder/'), of('folder/', 10))
  })

  await t.test('records of features', async (t) => {
    const jobs = state.records<number>('jobs')
    const job = state.records<number>('job')
    await jobs.set('a:b', 1)
    await jobs.set('\u{1f600}%_', 2)
    await job.set('a:b', 3)
    const found: Record<string, number> = {}
    for await (const [key, value] of jobs.entries()) found[key] = value
    t.same(found, { 'a:b': 1, '\u{1f600}%_': 2 })
    await jobs.delete('a:b')
    t.same([await jobs.get('a:b'), await job.get('a:b')], [undefined, 3])
    await t.rejects(jobs.set('x-jobs:a', 1), TypeError, 'a key that Keyv would take for one it has made')
    await t.rejects(jobs.set('a\0b', 1), TypeError)
    for (const key of ['x-jobs:a', 'a\0b'])
      t.equal(await jobs.get(key), undefined, 'but anybody may ask for what cannot be there')
    for (const name of ['', 'A', 'a:b', 'a_b', 'x'.repeat(41)])
      t.throws(() => state.records(name), /cannot name records/)
  })

  await t.test('records change as they are in the store', async (t) => {
    const counts = state.records<{ n: number }>('counts')
    const add = (value: { n: number } | undefined) => ({ n: (value?.n ?? 0) + 1 })
    await Promise.all(Array.from({ length: 12 }, () => counts.change('a', add)))
    t.same(await counts.get('a'), { n: 12 }, 'no change is lost')
    t.same(await counts.change('a', (same) => same), { n: 12 })
    let asked = 0
    const changed = await counts.change('a', async (value) => {
      if (asked++ === 0) await counts.set('a', { n: 100 })
      return add(value)
    })
    t.same([asked, changed, await counts.get('a')], [2, { n: 101 }, { n: 101 }], 'asked again after another write')
    asked = 0
    await counts.change('a', async () => {
      if (asked++ === 0) await counts.delete('a')
      return undefined
    })
    t.same([asked, await counts.get('a')], [2, undefined], 'removed, and gone already')
    await counts.change('a', (value) => value && add(value))
    await counts.change('b', add)
    const listed = []
    for await (const entry of counts.entries()) listed.push(entry)
    t.same(listed, [['b', { n: 1 }]])
    await t.rejects(
      counts.change('b', async (value) => {
        await counts.set('b', { n: Math.random() })
        return add(value)
      }),
      { code: 'ServiceUnavailable' },
      'others go on changing it',
    )
  })

  await t.test('uploads and parts', async (t) => {
    const upload = uploadRecord({ checksum: { algorithm: 'CRC32C', type: 'COMPOSITE' }, metadata: { a: 'b' } })
    const other = uploadRecord({ bucket: 'other' })
    await uploads.create(upload)
    await uploads.create(other)
    // Of a shared state with the folder that its parts are in.
    t.match(await uploads.get(upload.uploadId), upload)
    t.match(await uploads.list('photos'), [upload])
    const bytes = randomBytes(3 * 1024 * 1024 + 17)
    const ten = await putPart(state, upload.uploadId, 10, bytes)
    const nine = await putPart(state, upload.uploadId, 9, Buffer.alloc(0))
    t.ok((await readPart(state, upload.uploadId, ten)).equals(bytes))
    t.equal((await readPart(state, upload.uploadId, nine)).length, 0)
    t.same(await uploads.listParts(upload.uploadId, 0, 1000), [nine, ten], 'in numeric order')
    t.same(await uploads.listParts(upload.uploadId, 9, 1000), [ten])
    t.same(await uploads.listParts(upload.uploadId, 0, 1), [nine])
    const again = await putPart(state, upload.uploadId, 10, Buffer.from('new'))
    t.same(await uploads.listParts(upload.uploadId, 9, 10), [again])
    t.equal((await readPart(state, upload.uploadId, again)).toString(), 'new')
    t.equal(filesOf(data, upload.uploadId).length, 2, 'the bytes of the replaced part are gone')
    await uploads.abort(upload.uploadId)
    t.equal(await uploads.get(upload.uploadId), undefined)
    t.same(await uploads.listParts(upload.uploadId, 0, 10), [])
    t.notOk(existsSync(join(data, 'staging', upload.uploadId)))
    await t.rejects(uploads.abort(upload.uploadId), { code: 'NoSuchUpload' })
    await t.rejects(uploads.openPart(upload.uploadId, 1), { code: 'NoSuchUpload' })
    t.match(await uploads.get(other.uploadId), other)
    await uploads.abort(other.uploadId)
  })

  await t.test('odd and unknown upload ids', async (t) => {
    for (const id of ['', '..', '../../etc/passwd', 'a/b', 'x'.repeat(129), `${'x'.repeat(16)}\0`, randomUUID()]) {
      t.equal(await uploads.get(id), undefined)
      t.equal(await uploads.completed(id), undefined)
      await t.rejects(uploads.openPart(id, 1), { code: 'NoSuchUpload' })
      await t.rejects(uploads.putPart(id, partRecord(1, 0, '1-a')), { code: 'NoSuchUpload' })
      await t.rejects(uploads.abort(id), { code: 'NoSuchUpload' })
    }
    await t.rejects(uploads.listParts('..', 0, 1), { code: 'NoSuchUpload' })
    await t.rejects(uploads.finish(completedOf('..')), { code: 'NoSuchUpload' })
    await t.rejects(uploads.create(uploadRecord({ uploadId: '../x' })), RangeError)
  })

  await t.test('a record without all of its bytes is no part', async (t) => {
    const { uploadId } = await created()
    const writer = await uploads.openPart(uploadId, 1)
    await writer.write(Buffer.from('abc'))
    const file = await writer.finish()
    t.same(await uploads.listParts(uploadId, 0, 10), [], 'staged, not recorded')
    await t.rejects(uploads.putPart(uploadId, partRecord(1, 4, file)), { code: 'InternalError' })
    await t.rejects(uploads.putPart(uploadId, partRecord(2, 3, file)), { code: 'InternalError' })
    await t.rejects(uploads.putPart(uploadId, partRecord(1, 3, '1-none')), { code: 'InternalError' })
    await t.rejects(uploads.putPart(uploadId, partRecord(1, 3, '../x')), { code: 'InternalError' })
    const part = { ...partRecord(1, 3, file), crc: crc32('abc') }
    await uploads.putPart(uploadId, partRecord(1, 3, file))
    await writer.discard()
    t.same(await uploads.listParts(uploadId, 0, 10), [part], 'discard after putPart leaves it')

    const path = join(data, 'staging', uploadId, file)
    writeFileSync(path, 'abd')
    const given: Buffer[] = []
    const read = uploads.readPart(uploadId, part, (chunk) => void given.push(chunk))
    await t.rejects(read, { code: 'InternalError', message: /part 1 are not those that were uploaded/ }, 'other bytes')
    t.same(given, [], 'none of which was given')
    const { crc: _, ...earlier } = part
    t.equal(
      (await readPart(state, uploadId, earlier)).toString(),
      'abd',
      'a part of an earlier version is not compared',
    )
    truncateSync(path, 2)
    await t.rejects(readPart(state, uploadId, part), { code: 'InternalError' }, 'shorter than it says')
    unlinkSync(path)
    await t.rejects(readPart(state, uploadId, part), { code: 'InternalError' }, 'missing')
    await t.rejects(readPart(state, uploadId, { ...part, file: '../../state/records.sqlite' }), {
      code: 'InternalError',
    })
    writeFileSync(join(data, 'staging', uploadId, '1-stray'), 'abc')
    t.same(await uploads.listParts(uploadId, 0, 10), [], 'a stray file of that number does not stand in')
    await uploads.abort(uploadId)
  })

  await t.test('finish remembers the outcome and leaves nothing else', async (t) => {
    const { uploadId } = await created()
    const part = await putPart(state, uploadId, 1, Buffer.from('a'))
    const open = await uploads.openPart(uploadId, 2)
    await uploads.finish(completedOf(uploadId))
    t.same(await uploads.completed(uploadId), completedOf(uploadId))
    t.equal(await uploads.get(uploadId), undefined)
    t.notOk(existsSync(join(data, 'staging', uploadId)))
    await t.rejects(uploads.putPart(uploadId, part), { code: 'NoSuchUpload' })
    await t.rejects(async () => open.write(Buffer.from('x')), { code: 'NoSuchUpload' })
    await t.rejects(open.finish(), { code: 'NoSuchUpload' })
    await open.discard()
    await uploads.finish(completedOf(uploadId))
    t.same(await uploads.completed(uploadId), completedOf(uploadId), 'a second time is no error')
  })

  await t.test('parts that race the end of their upload', async (t) => {
    for (const end of [(id: string) => uploads.abort(id), (id: string) => uploads.finish(completedOf(id))]) {
      const { uploadId } = await created()
      const attempts = Array.from({ length: 12 }, async (_, i) => {
        const writer = await uploads.openPart(uploadId, (i % 4) + 1)
        for (let n = 0; n < i; n++) await writer.write(randomBytes(40_000))
        await uploads.putPart(uploadId, partRecord((i % 4) + 1, i * 40_000, await writer.finish()))
      })
      const [, ...results] = await Promise.allSettled([sleep(5).then(() => end(uploadId)), ...attempts])
      for (const result of results) {
        if (result.status === 'rejected') t.match(result.reason, { code: 'NoSuchUpload' })
      }
      t.notOk(existsSync(join(data, 'staging', uploadId)), 'no file')
      // A record left behind would show as soon as the upload and a file of its name were there again.
      await uploads.create(uploadRecord({ uploadId }))
      for (let number = 1; number <= 4; number++) writeFileSync(join(data, 'staging', uploadId, `${number}-x`), '')
      t.same(await uploads.listParts(uploadId, 0, 10), [], 'no record')
      await uploads.abort(uploadId)
    }
  })

  await t.test('sweep', async (t) => {
    const old = uploadRecord({ initiated: Date.now() - 8 * 24 * HOUR })
    const { uploadId } = await created()
    await uploads.create(old)
    await putPart(state, old.uploadId, 1, Buffer.from('x'))
    const part = await putPart(state, uploadId, 1, Buffer.from('x'))
    const writing = await uploads.openPart(uploadId, 2)
    await writing.write(Buffer.from('y'))
    const orphan = randomUUID()
    const stray = join(data, 'staging', uploadId, '3-stray')
    mkdirSync(join(data, 'staging', orphan))
    writeFileSync(stray, '')

    t.equal(await uploads.sweep(Date.now() - 7 * 24 * HOUR), 1)
    t.equal(await uploads.get(old.uploadId), undefined)
    t.notOk(existsSync(join(data, 'staging', old.uploadId)))
    t.ok(existsSync(join(data, 'staging', orphan)), 'what is new may be about to get its record')
    t.ok(existsSync(stray))

    shift = 2 * HOUR
    t.equal(await uploads.sweep(0), 0)
    shift = 0
    t.notOk(existsSync(join(data, 'staging', orphan)))
    t.notOk(existsSync(stray))
    t.same(await uploads.listParts(uploadId, 0, 10), [part], 'a living upload keeps its parts')
    await uploads.putPart(uploadId, partRecord(2, 1, await writing.finish()))
    t.equal((await uploads.listParts(uploadId, 0, 10)).length, 2, 'and the part that was being written')
    await uploads.abort(uploadId)
  })

  await t.test('many parts, up to the last number that S3 allows', async (t) => {
    const { uploadId } = await created()
    const numbers = Array.from({ length: 200 }, (_, i) => 9801 + i)
    await Promise.all(
      numbers.map(async (number) => {
        const file = `${number}-test`
        writeFileSync(join(data, 'staging', uploadId, file), '')
        await uploads.putPart(uploadId, partRecord(number, 0, file))
      }),
    )
    const found: number[] = []
    for (;;) {
      const page = await uploads.listParts(uploadId, found.at(-1) ?? 0, 60)
      if (page.length === 0) break
      found.push(...page.map(({ partNumber }) => partNumber))
    }
    t.same(found, numbers)
    await uploads.abort(uploadId)
  })

  async function created() {
    const upload = uploadRecord()
    await uploads.create(upload)
    return upload
  }
}

t.test('records in SQLite', (t) => contract(t, (data, now) => openState({ data, log, ...(now && { now }) })))

for (const kind of [redis, postgres]) {
  t.test(`records in ${kind.name}`, { skip: kind.skip }, async (t) => {
    const server = await kind.start()
    t.teardown(() => server.stop())
    await contract(t, (data, now) => openState({ data, url: server.url, log, ...(now && { now }) }))

    await t.test('two proxies share records, and a server that goes away is an error and no crash', async (t) => {
      const a = await openState({ data: temporaryFolder(t), url: server.url, log })
      const b = await openState({ data: temporaryFolder(t), url: server.url, log })
      await a.objects.set(objectRecord('shared', 'k'), heldLock())
      t.same(await b.objects.get('shared', 'k'), objectRecord('shared', 'k'))
      const upload = uploadRecord()
      await a.uploads.create(upload)
      const part = await putPart(a, upload.uploadId, 1, Buffer.from('x'))
      t.same(await b.uploads.listParts(upload.uploadId, 0, 10), [part], 'the other one shows it')
      await t.rejects(putPart(b, upload.uploadId, 1, Buffer.from('z')), { code: 'ServiceUnavailable' })
      await b.uploads.sweep(Date.now() + 1000)
      t.equal((await readPart(a, upload.uploadId, part)).toString(), 'x', 'nor any away')
      await b.uploads.sweep(Date.now() + 25 * HOUR)
      await t.rejects(putPart(a, upload.uploadId, 2, Buffer.from('x')), { code: 'NoSuchUpload' }, 'not for ever')

      await server.stop()
      const asked: Promise<unknown>[] = [
        a.objects.get('shared', 'k'),
        a.objects.getMany('shared', ['k']),
        a.objects.set(objectRecord('shared', 'k'), heldLock()),
        a.uploads.list('photos'),
        a.locks.withName('x', async () => undefined),
      ]
      await Promise.all(asked.map((one) => t.rejects(one, { code: 'ServiceUnavailable' })))
      await a.close()
      await b.close()
    })
  })
}

t.test('opening', async (t) => {
  const data = temporaryFolder(t)
  writeFileSync(join(data, 'a-file'), '')
  await t.rejects(openState({ data: join(data, 'a-file'), log }), {
    code: 'DATA_FOLDER',
    message: /something else has this name/,
  })
  for (const url of ['mysql://root:secret@host/db', 'memory:', 'redis', '', 'sqlite:///elsewhere', 'redis//x']) {
    const error = await openState({ data, url, log }).catch((error: unknown) => error)
    t.match(error, { code: 'STATE_URL', message: /sqlite:, redis:/ })
    t.notMatch(String(error), /secret/)
  }
  const port = await lastingPort()
  for (const url of [`redis://user:secret@127.0.0.1:${port}`, `postgres://user:secret@127.0.0.1:${port}/db`]) {
    const error = await openState({ data, url, log }).catch((error: unknown) => error)
    t.match(error, { code: 'STATE_UNREACHABLE', message: new RegExp(`127.0.0.1:${port}.*ECONNREFUSED`) })
    t.notMatch(String(error), /secret/)
  }

  const state = await openState({ data, url: 'sqlite:', log })
  await t.rejects(openState({ data, log }), { code: 'DATA_IN_USE', message: /in use by another dealgate/ })
  await t.rejects(openState({ data, log }), { code: 'DATA_IN_USE' }, 'the refused one did not take the lock away')
  await state.objects.set(objectRecord('b', 'k'), heldLock())
  const spool = await state.spool()
  await spool.write(Buffer.from('left'))
  await state.close()
  await state.close()
  await t.rejects(state.objects.get('b', 'k'), { code: 'ServiceUnavailable' }, 'closed')
  t.same(readdirSync(join(data, 'spool')), [])
  writeFileSync(join(data, 'spool', 'left-by-a-crash'), 'x')

  const again = await openState({ data, log })
  t.same(readdirSync(join(data, 'spool')), [])
  t.same(await again.objects.get('b', 'k'), objectRecord('b', 'k'))
  await again.close()
})
