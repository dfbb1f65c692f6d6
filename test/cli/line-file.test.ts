import { spawnSync } from 'node:child_process'
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

t.test('no line is lost when a process ends', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  const log = new URL('../../common/log.js', import.meta.url).href
  const file = new URL('../../cli/serve/line-file.js', import.meta.url).href
  const batch = new URL('../../common/files/line-batch.js', import.meta.url).href
  const run = (end: string) =>
    spawnSync(process.execPath, [
      ...['--conditions=dealgate-source', '--input-type=module', '--eval'],
      `import { createLogger } from '${log}'
       import { LineFile } from '${file}'
       import { LineBatch } from '${batch}'
       const file = await LineFile.open({ path: '${path}' })
       const lines = new LineBatch({ write: (all) => file.writeAll(all), writeNow: (all) => file.writeNow(all) })
       const log = createLogger({ level: 'info' })
       for (let n = 0; n < 300; n++) {
         log.info({ n }, 'logged')
         lines.add('written ' + n)
       }
       ${end}`,
    ])
  for (const [end, status] of [
    ['process.exit(3)', 3],
    ["throw new Error('a fault')", 1],
    ['', 0],
  ] as const) {
    const ended = run(end)
    t.equal(ended.status, status, String(ended.stderr).slice(-500))
    const logged = String(ended.stderr)
      .split('\n')
      .filter((line) => line.includes('"logged"'))
    t.same(
      logged.map((line) => JSON.parse(line).n),
      [...Array(300).keys()],
      `the log, with ${end || 'no end'}`,
    )
  }
  const written = readFileSync(path, 'utf8').trimEnd().split('\n')
  const each = Array.from({ length: 300 }, (_, n) => `written ${n}`)
  t.same(written, [...each, ...each, ...each], 'the file')
})

t.test('a process that ends writes the lines that wait for the disk', async (t) => {
  const path = join(temporaryFolder(t), 'lines')
  const file = new URL('../../cli/serve/line-file.js', import.meta.url).href
  const { status, stderr } = spawnSync(process.execPath, [
    ...['--conditions=dealgate-source', '--input-type=module', '--eval'],
    `import { LineFile } from '${file}'
     const file = await LineFile.open({ path: '${path}' })
     file.writeAll(['a', 'b'])
     setImmediate(() => {
       file.writeAll(['c'])
       process.on('exit', () => file.writeNow(['d']))
       throw new Error('a fault')
     })`,
  ])
  t.equal(status, 1, String(stderr).slice(-500))
  t.equal(readFileSync(path, 'utf8'), 'a\nb\nc\nd\n')
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
