import type { FileHandle } from 'node:fs/promises'
import t from 'tap'
import { Quota } from '../../../common/quota.js'
import { FileWriter } from '../../../src/state/files.js'
import { FolderStaging } from '../../../src/state/uploads/folder-staging.js'
import { StagedBytes } from '../../../src/state/uploads/staged-part.js'

const KiB = 1024

/** A handle that takes a third of what it is given. */
function shortHandle() {
  const written: Buffer[] = []
  const handle = {
    async writev(chunks: Buffer[]) {
      const all = Buffer.concat(chunks)
      written.push(all.subarray(0, Math.ceil(all.length / 3)))
      return { bytesWritten: Math.ceil(all.length / 3) }
    },
  }
  // Only this method is used by a writer that does not sync.
  return { handle: handle as unknown as FileHandle, written }
}

t.test('FileWriter goes on after a short write', async (t) => {
  const { handle, written } = shortHandle()
  const writer = new FileWriter(handle)
  const bytes = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 251))
  for (let i = 0; i < bytes.length; i += 7) writer.write(bytes.subarray(i, i + 7))
  await writer.flush(false)
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
