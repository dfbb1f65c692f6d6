import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join, posix, win32 } from 'node:path'
import t from 'tap'
import { EntryNames } from '../../../plugins/zip/names.js'
import { type Content, ZipWriter } from '../../../plugins/zip/writer.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { findClient, run } from '../../support/programs/run.js'

/** The paths of entries and the format of archives, without a server. */

const MiB = 1024 * 1024
const MODIFIED = Date.UTC(2026, 10, 29, 12, 30, 15)

/** What Python says of an archive: that it is whole, its entries, and the text of the last one. */
const READ = `
import json, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
entries = archive.infolist()
whole = archive.testzip() is None if sys.argv[2] == 'all' else None
last = archive.read(entries[-1]).decode() if entries else ''
print(json.dumps([whole, len(entries), [[e.filename, e.file_size, e.date_time[:4]] for e in entries[:3]], last]))`

const python = await findClient(t, 'python3')
const unzip = await findClient(t, 'unzip')

async function inspect(file: string, much: 'all' | 'names' = 'all') {
  if (python === undefined) return undefined
  return JSON.parse(String(await run(python, ['-c', READ, file, much])))
}

const text =
  (word: string): Content =>
  (sink) =>
    sink(Buffer.from(word))

/** A file with a hole for each chunk of zeros, so that archives of gigabytes need no disk. */
function sparseFile(t: Parameters<typeof temporaryFolder>[0]) {
  const file = join(temporaryFolder(t), 'made.zip')
  const handle = openSync(file, 'w')
  let at = 0
  const write = async (bytes: Buffer) => {
    if (bytes.length < MiB || bytes[0] !== 0) writeSync(handle, bytes, 0, bytes.length, at)
    at += bytes.length
  }
  const close = () => {
    ftruncateSync(handle, at)
    closeSync(handle)
    return file
  }
  return { write, close }
}

const KEYS = [
  ...['a.txt', 'A.txt', 'a/b.txt', 'a/b.txt/below', 'a//b', 'a/_/b', '../x', '/etc/passwd', 'C:\\x', 'a/../../b'],
  ...['..', '.', '...', 'a/..', 'dots./x. ', 'con', 'sub/NUL.txt', 'COM1.log', 'nul\u0000byte', 'line\nfeed', '//'],
  ...[
    'photo\u202egnp.exe',
    'q?*<>|"',
    'e\u0301',
    '\u00e9',
    '日本語/👩‍👧.png',
    'x'.repeat(1000),
    `y${'z'.repeat(900)}.tar.gz`,
  ],
  ...['k/'.repeat(500), 'K/'.repeat(500), 'a', 'a (2).txt', '~/.ssh/id'],
]

t.test('every key gets a path that stays in its folder on every system, and that no other has', async (t) => {
  const names = new EntryNames()
  const paths = KEYS.map((key) => names.of(key, true) ?? '')
  for (const path of paths) {
    t.equal(posix.normalize(path), path, `${JSON.stringify(path.slice(0, 80))} names nothing above`)
    t.notOk(win32.isAbsolute(path) || /^[a-z]:/i.test(path), 'nor an absolute place')
    for (const part of path.split('/')) {
      t.ok(part !== '' && Buffer.byteLength(part) <= 255, 'each part is a name that file systems take')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what no name may have
      t.notMatch(part, /[\u0000-\u001f\u007f\u202a-\u202e<>:"|?*\\]|[. ]$/)
      t.notMatch(part, /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i, 'none is that of a device')
    }
  }
  const compared = paths.map((path) => path.normalize('NFC').toLowerCase())
  t.equal(new Set(compared).size, KEYS.length, 'also where the case of letters, or the form of accents, does not count')
  for (const path of compared)
    t.notOk(
      compared.some((other) => other.startsWith(`${path}/`)),
      'no file is a folder, too',
    )
  const again = new EntryNames()
  t.same(
    KEYS.map((key) => again.of(key, true)),
    paths,
    'the same keys get the same paths',
  )
  t.match(paths, ['a.txt', 'A (2).txt', 'a/b.txt', 'a/b.txt (2)/below', 'a/_/b', 'a/_ (2)/b', '__/x', '_/etc/passwd'])
})

t.test('a folder has one entry, and many like keys cost no more than others', async (t) => {
  const names = new EntryNames()
  t.equal(names.of('f/', false), 'f/')
  t.equal(names.of('f/', false), undefined)
  t.equal(names.of('f/', true), 'f/_', 'a key of a folder with bytes is a file')
  const cases = Array.from({ length: 4096 }, (_, i) =>
    Array.from('abcdefghijkl', (letter, bit) => (i & (1 << bit) ? letter.toUpperCase() : letter)).join(''),
  )
  const paths = new Set(cases.map((key) => names.of(key, true)?.toLowerCase()))
  t.equal(paths.size, cases.length)
})

t.test('entries, stored and deflated, are what was given', async (t) => {
  for (const level of [0, 1, 9]) {
    const { write, close } = sparseFile(t)
    const zip = new ZipWriter(write, level)
    await zip.add({ path: 'f/', modified: MODIFIED, size: 0 })
    await zip.add({ path: 'f/empty', modified: 0, size: 0 })
    await zip.add({ path: 'ünï.txt', modified: Date.UTC(2300, 0), size: 300_000 }, text('0123456789'.repeat(30_000)))
    await zip.add({ path: 'last', modified: MODIFIED, size: 4 }, text('last'))
    await zip.end()
    const file = close()
    const found = await inspect(file)
    if (found)
      t.same(
        found,
        [
          true,
          4,
          [
            ['f/', 0, [2026, 11, 29, 12]],
            ['f/empty', 0, [1980, 1, 1, 0]],
            ['ünï.txt', 300_000, [2107, 12, 31, 23]],
          ],
          'last',
        ],
        `level ${level}`,
      )
    if (unzip) t.match(String(await run(unzip, ['-t', file])), /No errors detected/)
  }
})

t.test('an entry and an archive beyond 4 GiB, and entries beyond 65,535, are stated in ZIP64', async (t) => {
  const zeros = Buffer.alloc(MiB)
  const big = 4097 * MiB
  const { write, close } = sparseFile(t)
  const zip = new ZipWriter(write)
  const content: Content = async (sink) => {
    for (let i = 0; i < 4097; i++) await sink(zeros)
  }
  await zip.add({ path: 'big', modified: MODIFIED, size: big }, content)
  await zip.add({ path: 'last', modified: MODIFIED, size: 9 }, text('beyond it'))
  await zip.end()
  const found = await inspect(close(), 'names')
  if (found)
    t.match(found, [
      null,
      2,
      [
        ['big', big],
        ['last', 9],
      ],
      'beyond it',
    ])

  const many = sparseFile(t)
  const zips = new ZipWriter(many.write)
  for (let i = 0; i < 65_600; i++) await zips.add({ path: `f/${i}`, modified: MODIFIED, size: 0 })
  await zips.add({ path: 'last', modified: MODIFIED, size: 1 }, text('!'))
  await zips.end()
  const counted = await inspect(many.close(), 'names')
  if (counted) t.match(counted, [null, 65_601, [['f/0', 0]], '!'])
})

t.test('content of another size than was said, and a client that is gone, end the archive', async (t) => {
  for (const level of [0, 6]) {
    const zip = () => new ZipWriter(async () => {}, level)
    const entry = { path: 'a', modified: MODIFIED, size: 5 }
    await t.rejects(zip().add(entry, text('four')), /ended after 4 of its 5 bytes/)
    await t.rejects(zip().add(entry, text('sixsix')), /longer than its 5 bytes/)
    const gone = new ZipWriter(() => Promise.reject(new Error('gone')), level)
    const random = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * i * 31) % 251))
    const size = random.length * 40
    const all: Content = async (sink) => {
      for (let i = 0; i < 40; i++) await sink(random)
    }
    await t.rejects(gone.add({ path: 'a', modified: 0, size }, all), /gone/)
  }
})
