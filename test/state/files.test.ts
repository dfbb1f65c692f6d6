import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { Quota } from '../../src/common/quota.js'
import { FileWriter, readFile } from '../../src/state/files.js'
import { FolderStaging } from '../../src/state/uploads/folder-staging.js'
import { StagedBytes } from '../../src/state/uploads/staged-part.js'

const KiB = 1024

/** A handle whose writes are finished by hand and may take less than they were given. */
function slowHandle(take: (bytes: number) => number = (bytes) => bytes) {
  const calls: string[] = []
  const pending: (() => void)[] = []
  const written: Buffer[] = []
  const handle = {
    writev: (chunks: Buffer[]) =>
      new Promise((resolve) => {
        const all = Buffer.concat(chunks)
        const part = all.subarray(0, take(all.length))
        calls.push(`write ${part.length}`)
        written.push(part)
        pending.push(() => resolve({ bytesWritten: part.length }))
      }),
    async sync() {
      calls.push('sync')
    },
  }
  // Only these two methods are used by the writer.
  return { handle: handle as unknown as FileHandle, calls, pending, written }
}

t.test('FileWriter gathers small chunks and pushes back', async (t) => {
  const { handle, calls, pending } = slowHandle()
  const writer = new FileWriter(handle)
  for (let i = 0; i < 4; i++) t.equal(writer.write(Buffer.alloc(64 * KiB)), undefined)
  t.same(calls, [`write ${256 * KiB}`])
  for (let i = 0; i < 3; i++)
    t.equal(writer.write(Buffer.alloc(64 * KiB)), undefined, 'the next block is gathered meanwhile')
  const pressure = writer.write(Buffer.alloc(64 * KiB))
  t.ok(pressure, 'then the writer must wait')
  let through = false
  void pressure?.then(() => {
    through = true
  })
  await new Promise(setImmediate)
  t.equal(through, false)
  pending.shift()?.()
  await pressure
  t.same(calls.length, 2)
  t.equal(writer.write(Buffer.from('tail')), undefined)
  const flushed = writer.flush(true)
  for (let next = pending.shift(); calls.at(-1) !== 'sync'; next = pending.shift()) {
    next?.()
    await new Promise(setImmediate)
  }
  await flushed
  t.same(calls, [`write ${256 * KiB}`, `write ${256 * KiB}`, 'write 4', 'sync'], 'synced after the last write')
  t.equal(writer.size, 512 * KiB + 4)
})

t.test('FileWriter goes on after a short write', async (t) => {
  const { handle, pending, written } = slowHandle((bytes) => Math.ceil(bytes / 3))
  const writer = new FileWriter(handle)
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251))
  for (let i = 0; i < bytes.length; i += 7) writer.write(bytes.subarray(i, i + 7))
  let done = false
  const flushed = writer.flush(false).then(() => {
    done = true
  })
  while (!done) {
    pending.shift()?.()
    await new Promise(setImmediate)
  }
  await flushed
  t.ok(Buffer.concat(written).equals(bytes))
})

t.test('FileWriter bounds the number of gathered chunks', async (t) => {
  const { handle, calls } = slowHandle()
  const writer = new FileWriter(handle)
  for (let i = 0; i < 1024; i++) writer.write(Buffer.from('x'))
  t.same(calls, ['write 1024'])
})

t.test('a full disk is told', { skip: process.platform !== 'linux' && '/dev/full is of Linux' }, async (t) => {
  const handle = await open('/dev/full', 'w')
  const writer = new FileWriter(handle)
  writer.write(Buffer.alloc(300 * KiB))
  await t.rejects(writer.flush(false), { code: 'ENOSPC' })
  await t.rejects(async () => writer.write(Buffer.from('x')), { code: 'ENOSPC' }, 'and told again')
  await t.rejects(writer.flush(true), { code: 'ENOSPC' })
  await writer.abandon()
  await handle.close()
})

t.test('readFile', async (t) => {
  const folder = t.testdir({ file: 'x'.repeat(1500 * KiB), empty: '' })
  const handle = await open(join(folder, 'file'), 'r')
  t.teardown(() => handle.close())
  const sizes: number[] = []
  let busy = 0
  await readFile(handle, 1500 * KiB, async (chunk) => {
    t.equal(++busy, 1, 'one chunk at a time')
    await new Promise(setImmediate)
    busy--
    sizes.push(chunk.length)
  })
  t.same(sizes, [512 * KiB, 512 * KiB, 476 * KiB])
  for (const size of [1500 * KiB + 1, 1500 * KiB - 1, 0]) {
    await t.rejects(
      readFile(handle, size, () => {
        t.fail('no byte of a file with the wrong length')
      }),
      { code: 'InternalError' },
    )
  }
  const empty = await open(join(folder, 'empty'), 'r')
  await readFile(empty, 0, () => {
    t.fail('no byte')
  })
  await empty.close()
})

t.test('staging over a folder that is spoilt', async (t) => {
  const folder = t.testdir({ staging: 'a file' })
  const staging = new FolderStaging(join(folder, 'staging'), new StagedBytes(new Quota({ total: 1e6, perClient: 1e6 })))
  const uploadId = 'a'.repeat(16)
  const attempts: (() => Promise<unknown>)[] = [
    () => staging.makeUpload(uploadId),
    () => staging.openPart(uploadId, 1, '', 0),
    () => staging.files(uploadId),
    () => staging.has(uploadId, '1-a'),
  ]
  for (const attempt of attempts) {
    await t.rejects(attempt(), { code: 'InternalError', message: /cannot keep or read/ })
  }
  await t.rejects(staging.makeUpload('../x'), { code: 'NoSuchUpload' })
})

t.test('the bytes of earlier runs count once', async (t) => {
  const [one, two] = ['a'.repeat(16), 'b'.repeat(16)]
  const folder = t.testdir({ [one]: { '1-x': 'x'.repeat(600) }, [two]: { '1-x': 'x'.repeat(300) } })
  const quota = new Quota({ total: 1000, perClient: 1000 })
  const staging = new FolderStaging(folder, new StagedBytes(quota))
  let lookups = 0
  const failing = async () => {
    if (++lookups === 2) throw new Error('lost connection')
    return 'key'
  }
  await t.rejects(staging.count(failing), /lost connection/)
  t.ok(quota.take('other', 1000), 'a count that failed counts nothing')
  quota.give('other', 1000)

  await staging.count(async (uploadId) => {
    if (uploadId === one) await staging.removeUpload(one)
    return 'key'
  })
  t.notOk(quota.take('other', 701))
  t.ok(quota.take('other', 700), 'an upload that ends while it is counted is not counted')
})

t.test('a declared length takes no more than a little room before its bytes arrive', async (t) => {
  const folder = t.testdir()
  const MiB = 1024 * KiB
  const staging = new FolderStaging(folder, new StagedBytes(new Quota({ total: 200 * MiB, perClient: 200 * MiB })))
  const uploadId = 'a'.repeat(16)
  await staging.makeUpload(uploadId)
  const parts = [1, 2, 3].map((number) => staging.openPart(uploadId, number, 'key', 5 * 1024 * MiB))
  const open = await Promise.all(parts)
  await t.rejects(staging.openPart(uploadId, 4, 'key', 64 * MiB), { code: 'SlowDown' })
  await Promise.all(open.map((part) => part.discard()))
  await (await staging.openPart(uploadId, 4, 'key', 64 * MiB)).discard()
})
