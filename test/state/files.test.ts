import type { FileHandle } from 'node:fs/promises'
import t from 'tap'
import { Quota } from '../../src/common/quota.js'
import { FileWriter } from '../../src/state/files.js'
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
  void pressure?.then(() => (through = true))
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
  const flushed = writer.flush(false).then(() => (done = true))
  while (!done) {
    pending.shift()?.()
    await new Promise(setImmediate)
  }
  await flushed
  t.ok(Buffer.concat(written).equals(bytes))
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
