import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LogSpool } from '../../../../src/s3/logging/spool.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { keptLog } from '../../../support/server/kept-log.js'

const logging = { target: 'logs', prefix: 'a/', owner: 'o', by: '' }

async function openSpool(t: Test, { maxBytes = 1024 ** 3, folder = join(temporaryFolder(t), 'spool') } = {}) {
  const { log, lines } = keptLog()
  let dropped = 0
  const onDropped = (count: number) => {
    dropped += count
  }
  const spool = await LogSpool.open({ folder, maxBytes, intervalMs: 3_600_000, log, onDropped })
  return { spool, folder, lines, dropped: () => dropped }
}

t.test('a file for each bucket, day and place', async (t) => {
  const { spool, folder } = await openSpool(t)
  spool.add({ bucket: 'one', logging }, '2026-11-23', 'a')
  spool.add({ bucket: 'one', logging: { ...logging } }, '2026-11-23', 'b')
  spool.add({ bucket: 'one', logging }, '2026-11-24', 'c')
  spool.add({ bucket: 'one', logging: { ...logging, prefix: 'b/' } }, '2026-11-24', 'd')
  spool.add({ bucket: 'two', logging }, '2026-11-24', 'e')
  await spool.flush()
  t.same(spool.sealed, [])
  await spool.flush(true)
  const contents = await Promise.all(
    spool.sealed.map(async (file) => {
      const read = await spool.read(file)
      return [read?.bucket, file.day, read?.logging.prefix, read?.lines.toString()]
    }),
  )
  t.same(contents, [
    ['one', '2026-11-23', 'a/', 'a\nb\n'],
    ['one', '2026-11-24', 'a/', 'c\n'],
    ['one', '2026-11-24', 'b/', 'd\n'],
    ['two', '2026-11-24', 'a/', 'e\n'],
  ])
  t.equal(new Set(spool.sealed.map(({ unique }) => unique)).size, 4)
  const next = await openSpool(t, { folder })
  t.same(next.spool.sealed.map(({ name }) => name).sort(), spool.sealed.map(({ name }) => name).sort(), 'as they were')
  for (const file of [...spool.sealed]) await spool.remove(file)
  t.same([spool.bytes, spool.sealed, await readdir(folder)], [0, [], []])
})

t.test('the oldest file is dropped when too many wait', async (t) => {
  const { spool, lines, dropped } = await openSpool(t, { maxBytes: 3000 })
  for (const bucket of ['one', 'two', 'six']) {
    for (let i = 0; i < 10; i++) spool.add({ bucket, logging }, '2026-11-23', 'x'.repeat(100))
    await spool.flush(true)
  }
  t.equal(dropped(), 10)
  t.same(await Promise.all(spool.sealed.map(async (file) => (await spool.read(file))?.bucket)), ['two', 'six'])
  t.match(lines, [{ msg: /^dropped an access log/, bucket: 'one', lines: 10 }])
})

t.test('lines beyond the memory for them are dropped', async (t) => {
  const { spool, dropped } = await openSpool(t)
  const line = 'x'.repeat(1023)
  for (let i = 0; i < 9 * 1024; i++) spool.add({ bucket: `b${i % 100}`, logging }, '2026-11-23', line)
  t.equal(dropped(), 1024)
  await spool.flush()
  spool.add({ bucket: 'b1', logging }, '2026-11-23', line)
  t.equal(dropped(), 1024)
})
