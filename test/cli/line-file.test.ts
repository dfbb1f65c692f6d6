import { appendFileSync, readFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LineFile } from '../../cli/serve/line-file.js'
import { temporaryFolder } from '../support/content/folders.js'

t.test('lines that a slow disk does not take in time are refused, and the others are written', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  const file = await LineFile.open({ path, maxWaitingBytes: 100 })
  const lines = Array.from({ length: 10 }, (_, n) => `${n} ${'x'.repeat(30)}`)
  const outcomes = await Promise.allSettled(lines.map((line) => file.write(line)))
  const statuses = outcomes.map(({ status }) => status)
  t.same(statuses, [...Array(3).fill('fulfilled'), ...Array(7).fill('rejected')])
  t.match(outcomes[9], { reason: { message: /too many lines wait/ } })
  await file.write(`a line ${'of any size '.repeat(20)}`)
  await file.close()
  t.equal(readFileSync(path, 'utf8').split('\n').length, 5)
})

t.test('a line that was cut short stays alone', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  appendFileSync(path, 'whole\nhal')
  const file = await LineFile.open({ path, durable: true })
  await file.write('after a crash')
  const restore = await fullDisk(t, path, 5)
  await t.rejects(file.write('on a full disk'), { code: 'ENOSPC' })
  await t.rejects(file.write('still full'), { code: 'ENOSPC' })
  restore()
  await file.write('with room')
  await file.write('again')
  await file.close()
  t.equal(readFileSync(path, 'utf8'), 'whole\nhal\nafter a crash\non a \nwith room\nagain\n')
})

/** The disk takes so many more bytes. @returns makes room */
async function fullDisk(t: Test, path: string, room: number): Promise<() => void> {
  const handle = await open(path, 'r')
  const all = Object.getPrototypeOf(handle) as Pick<FileHandle, 'write'>
  await handle.close()
  const { write } = all
  const restore = () => (all.write = write)
  t.teardown(restore)
  let left = room
  all.write = async function (this: FileHandle, bytes: Buffer, from: number) {
    if (left === 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    const taken = Math.min(left, bytes.length - from)
    left -= taken
    return Reflect.apply(write, this, [bytes, from, taken])
  } as FileHandle['write']
  return restore
}
