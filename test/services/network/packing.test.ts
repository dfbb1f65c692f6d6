import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { CarReader } from '@ipld/car'
import * as dagPb from '@ipld/dag-pb'
import fc from 'fast-check'
import { CID } from 'multiformats/cid'
import t, { type Test } from 'tap'
import { type Car, type DealFile, NetworkError, type PackedFile } from '../../../services/network/network.js'
import {
  createCommit,
  createReadFromCar,
  dagNames,
  dagNamesInOrder,
  pack,
} from '../../../services/network/pack/index.js'
import { bytes, MiB } from '../../support/content/content.js'

const commit = createCommit()
const readFromCar = createReadFromCar()

/** Content in pieces of sizes that have nothing to do with chunks. */
async function* inPieces(content: Uint8Array, piece = 70_001): AsyncIterable<Uint8Array> {
  for (let at = 0; at < content.length; at += piece) yield content.subarray(at, at + piece)
}

const dealFile = (path: readonly string[], content: Uint8Array): DealFile => ({
  path,
  size: content.length,
  content: () => inPieces(content),
})

async function* each<T>(values: Iterable<T>): AsyncIterable<T> {
  yield* values
}

async function packAll(
  target: string,
  files: Iterable<DealFile>,
  more?: { readonly signal?: AbortSignal; onProgress?(bytes: number, files: number): void },
): Promise<{ readonly car: Car; readonly packed: PackedFile[] }> {
  const packed: PackedFile[] = []
  const car = await pack(each(files), { target, onFile: (file) => void packed.push(file), ...more })
  return { car, packed }
}

const newCar = (t: Test): string => join(t.testdir(), 'deal.car')
const notRetrievable = { name: 'NetworkError', code: 'NotRetrievable' }

interface Folder {
  readonly [name: string]: Uint8Array | Folder
}

function* filesOf(folder: Folder, path: readonly string[] = []): Iterable<DealFile> {
  for (const [name, held] of Object.entries(folder)) {
    if (held instanceof Uint8Array) yield dealFile([...path, name], held)
    else yield* filesOf(held, [...path, name])
  }
}

/**
 * CIDs of `bytes('file', size)`. Like the others of this file, they are by a second implementation of the standards,
 * which shares no code with the first: test/services/network/second-chunker.ts in the history of this repository.
 */
const OF_FILES = [
  [0, 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'],
  [MiB, 'bafkreiejrtlblibv5ktpn4e3qyw4s2shaxvh4ip35h2qei7pfidbon3sxy'],
  [MiB + 1, 'bafybeie6udkavmot2jli6t3blq4mr5pv2www3pqi76x3nlyrp2witfhkqi'],
  [3 * MiB + 77, 'bafybeidqhvgtokmfucphmuqb2dcosxcac6kvz6zdvf3wpi526sqhazurza'],
] as const

t.test('files have the CIDs of their bytes, and come back out of the CAR', async (t) => {
  for (const [size, cid] of OF_FILES) {
    const content = bytes('file', size)
    const { car, packed } = await packAll(newCar(t), [dealFile([], content)])
    t.equal(car.dataCid, cid, `${size} bytes`)
    t.same(packed, [{ path: [], size, cid }])
    t.equal(car.size, statSync(car.file).size)
    t.ok((await buffer(readFromCar(car.file, cid))).equals(content))
  }
})

/** Long names, so that few of them make a directory of more than one block: each takes 48 bytes more than the name. */
const numbered = (count: number, length: number): string[] =>
  Array.from({ length: count }, (_, at) => `${at}`.padStart(length, '-'))

const withNames = (
  names: readonly string[],
  content = (name: string): Uint8Array | Folder => Buffer.from(name),
): Folder => Object.fromEntries(names.map((name) => [name, content(name)]))

/** 249 names of 1000 characters, and one that fills up what is left of 256 KiB but for these bytes. */
const around256KiB = (more: number): Folder =>
  withNames([...numbered(249, 1000), 'x'.repeat(256 * 1024 - (4 + 249 * 1048) - 48 + more)], () => Buffer.from('x'))

/** Two names with the same hash, as anybody can make them. */
const ALIKE = ['0123456789abcdefghijklmnopqrstuv', 'xxxxxxxxxx257668QCAJ(\t@q\b\bIk\u0011\u0017%\u001e']

const OF_FOLDERS: readonly (readonly [string, Folder, string])[] = [
  ['none', {}, 'bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354'],
  [
    'nested ones',
    {
      'a.txt': Buffer.from('a'),
      empty: Buffer.alloc(0),
      folder: {
        b: bytes('b', MiB + 3),
        'back\\': { slash: Buffer.from('c') },
        'ünder ^ x': { deep: { deeper: bytes('b', MiB + 3).subarray(1) } },
      },
      z: Buffer.from('a'),
    },
    'bafybeibji22aofcjimfolbr6wpusc4vvzufnmhjwmebqfy3zyh47u5nxzy',
  ],
  [
    'folders, two with the same hash',
    withNames([...ALIKE, ...numbered(1000, 240)], (name) => ({ 'a file': Buffer.from(name) })),
    'bafybeicz4lafjoqgr6tlx4n3tdnqijcn6l3lqhyduzdanq6lwxr5ovqv7i',
  ],
  ['one block', around256KiB(0), 'bafybeifdbphj4zsyirsqmchriz5up3h4czrdwql54dhm4tm7heefeinnji'],
  ['a byte more', around256KiB(1), 'bafybeibgupq2zytly74ku7otc7n75bbgj2vc65ck7nqlbrc6fmq6necn74'],
]

t.test('folders keep their nesting, and large ones are sharded', async (t) => {
  for (const [what, folder, cid] of OF_FOLDERS) {
    const { car, packed } = await packAll(newCar(t), filesOf(folder))
    t.equal(car.dataCid, cid, what)
    for (const { path, size, cid } of packed.filter((_, at) => at % 100 < 5))
      assert.equal((await buffer(readFromCar(car.file, cid))).length, size, path.join('/'))
    for await (const { cid, bytes } of (await CarReader.fromBytes(readFileSync(car.file))).blocks()) {
      if (cid.code === dagPb.code) assert.ok(bytes.length <= 256 * 1024, `no node is larger: ${bytes.length}`)
    }
  }
})

/**
 * Blocks beneath a root as `ipfs dag export` writes them: each before what it links to, in the order of its links, and
 * once.
 */
async function exported(reader: CarReader, cid: CID, seen = new Set<string>()): Promise<string[]> {
  if (seen.has(cid.toString())) return []
  seen.add(cid.toString())
  const order = [cid.toString()]
  const block = await reader.get(cid)
  if (cid.code === dagPb.code) {
    for (const { Hash } of dagPb.decode(block?.bytes ?? new Uint8Array()).Links)
      order.push(...(await exported(reader, Hash, seen)))
  }
  return order
}

t.test('a CAR has the root first, then all depth first, each block once', async (t) => {
  const twice = randomBytes(2 * MiB + 9)
  const many = withNames(numbered(1000, 240), () => Buffer.from('x'))
  const nested: Folder = { a: twice, b: { again: twice, c: { d: Buffer.from('x') } }, many }
  // A file with the bytes of a node: same digest, another block.
  const { car: small } = await packAll(newCar(t), filesOf({ f: { g: Buffer.from('g') } }))
  const node = await (await CarReader.fromBytes(readFileSync(small.file))).get(CID.parse(small.dataCid))
  const mimic: Folder = { a: node?.bytes ?? new Uint8Array(), z: { f: { g: Buffer.from('g') } } }
  for (const folder of [nested, mimic, {}]) {
    const { car } = await packAll(newCar(t), filesOf(folder))
    const reader = await CarReader.fromBytes(readFileSync(car.file))
    const order: string[] = []
    for await (const cid of reader.cids()) order.push(cid.toString())
    t.ok(order.join() === (await exported(reader, CID.parse(car.dataCid))).join(), `${order.length} blocks`)
    t.equal(order[0], car.dataCid)
    t.equal(car.size, statSync(car.file).size)
    t.notOk(existsSync(`${car.file}.blocks`), 'nothing else is left')
  }
  const { car, packed } = await packAll(newCar(t), filesOf(mimic))
  t.equal((await buffer(readFromCar(car.file, packed[1]?.cid ?? ''))).toString(), 'g', 'beneath the node, too')
})

t.test('what packing refuses leaves no file', async (t) => {
  const content = Buffer.from('content')
  const file = dealFile(['a', 'b'], content)
  const cases: [string, Iterable<DealFile>, RegExp][] = [
    ['too long', [{ ...file, size: 6 }], /longer than the declared 6 bytes/],
    ['too short', [{ ...file, size: 8 }], /shorter than the declared 8 bytes/],
    ['twice', [file, file], /Two files of a deal have the path "a\/b"/],
    ['a directory for a file', [file, dealFile(['a'], content)], /Two files of a deal/],
    ['a file for a directory', [dealFile(['a'], content), file], /"a" is a file/],
    ['a directory again', [file, dealFile(['b'], content), dealFile(['a', 'c'], content)], /do not come together/],
    ['a root among others', [file, dealFile([], content)], /must be its only file/],
    ...['', '..', 'x/y', 'x\0y', '\ud800'].map((name): [string, Iterable<DealFile>, RegExp] => [
      `the name ${JSON.stringify(name)}`,
      [dealFile([name, 'b'], content)],
      /cannot hold the name/,
    ]),
  ]
  for (const [what, files, message] of cases) {
    const target = newCar(t)
    await t.rejects(packAll(target, files), { message }, what)
    t.notOk(existsSync(target), `${what}: no file is left`)
  }
  const target = newCar(t)
  await t.rejects(
    pack(each([file]), { target, onFile: () => Promise.reject(new Error('not recorded')) }),
    { message: 'not recorded' },
    'the callback of a file can stop it',
  )
  t.notOk(existsSync(target))
})

t.test('a disk that is full fails the packing', { skip: !existsSync('/dev/full') }, async (t) => {
  const target = newCar(t)
  symlinkSync('/dev/full', target)
  await t.rejects(packAll(target, [dealFile([], randomBytes(40 * MiB))]), { code: 'ENOSPC' })
  t.notOk(existsSync(target))
  t.ok(existsSync('/dev/full'))
})

t.test('packing ends when it is aborted, also while content keeps it waiting', async (t) => {
  const target = newCar(t)
  const ending = new AbortController()
  let closed = false
  const hanging: DealFile = {
    path: ['hanging'],
    size: 10,
    content: async function* () {
      try {
        yield Buffer.from('12345')
        ending.abort(new Error('given up'))
        await sleep(60_000, undefined, { ref: false })
      } finally {
        closed = true
      }
    },
  }
  await t.rejects(packAll(target, [hanging], { signal: ending.signal }), { message: 'given up' })
  t.notOk(existsSync(target))
  t.notOk(closed, 'what hangs is not waited for')
})

/** The root in the CID of a piece, in hex. */
const rootOf = (pieceCid: string) => Buffer.from(CID.parse(pieceCid).multihash.digest).toString('hex')

t.test('pieces', async (t) => {
  const file = join(t.testdir(), 'piece')
  writeFileSync(file, Buffer.alloc(127))
  const zeros = { pieceCid: 'baga6ea4seaqdomn3tgwgrh3g532zopskstnbrd2n3sxfqbze7rxt7vqn7veigmy', pieceSize: 128 }
  t.same(await commit(file, {}), zeros, 'the one of zeros that is known to everybody')
  for (const [size, root, pieceSize] of [
    [0, '3731bb99ac689f66eef5973e4a94da188f4ddcae580724fc6f3fd60dfd488333', 128],
    [128, '689e7783b1c9cc84cfa568cfd335d02410f2a41bc2eccd45ae1352e7a89a332e', 256],
    [4065, '92d6ff2bb5210b4a183b32c9a426b6fe1d38658168d95defa9293b380cf9b415', 8192],
    [1_300_000, '294e07c564b1223c5c20a8a2beeb343c8103c4f6bbff6c0666e83bd934da5a3e', 2_097_152],
  ] as const) {
    writeFileSync(file, bytes('piece', size))
    const piece = await commit(file, {})
    t.same([rootOf(piece.pieceCid), piece.pieceSize], [root, pieceSize], `${size} bytes`)
  }
  const told: number[] = []
  writeFileSync(file, Buffer.alloc(3 * MiB))
  await commit(file, { onProgress: (bytes) => void told.push(bytes) })
  t.same(told, [MiB, 2 * MiB, 3 * MiB])
  const ending = new AbortController()
  await t.rejects(commit(file, { signal: ending.signal, onProgress: () => ending.abort(new Error('given up')) }), {
    message: 'given up',
  })
  writeFileSync(file, Buffer.alloc(127))
  const late = new AbortController()
  const giveUpLate = (): void => {
    // The thread is done meanwhile, and has said so.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
    late.abort(new Error('given up late'))
  }
  await t.rejects(commit(file, { signal: late.signal, onProgress: giveUpLate }), { message: 'given up late' })
  await t.rejects(commit(`${file}-gone`, {}), { code: 'ENOENT' })
  t.same(await commit(file, {}), zeros, 'after what was given up')
})

t.test('damage in a CAR is found before any byte of it is given', async (t) => {
  const content = randomBytes(2 * MiB + 5)
  const { car } = await packAll(newCar(t), [dealFile([], content)])
  const whole = readFileSync(car.file)
  const read = createReadFromCar()

  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] ?? 0) ^ change
      writeFileSync(car.file, damaged)
      let given = 0
      try {
        for await (const chunk of read(car.file, car.dataCid)) {
          assert.ok(content.subarray(given, given + chunk.length).equals(chunk), 'what is given is right')
          given += chunk.length
        }
        assert.equal(given, content.length, 'all of it, where the damage did not matter')
      } catch (error) {
        assert.ok(error instanceof NetworkError && error.code === 'NotRetrievable', String(error))
      }
    }),
    { numRuns: 50 },
  )

  for (const length of [0, 30, MiB, whole.length - 1]) {
    writeFileSync(car.file, whole.subarray(0, length))
    await t.rejects(buffer(read(car.file, car.dataCid)), notRetrievable, `cut to ${length} bytes`)
  }
  writeFileSync(car.file, whole)
  appendFileSync(car.file, Buffer.from([0x80]))
  await t.rejects(buffer(read(car.file, car.dataCid)), notRetrievable, 'with half a section behind')

  writeFileSync(car.file, whole)
  const running = read(car.file, car.dataCid)[Symbol.asyncIterator]()
  await running.next()
  truncateSync(car.file, MiB + 500)
  await t.rejects(
    (async () => {
      while (!(await running.next()).done);
    })(),
    notRetrievable,
    'cut while it is read',
  )
  await t.rejects(buffer(read(`${car.file}.gone`, car.dataCid)), notRetrievable, 'gone')
  writeFileSync(car.file, whole)
  t.ok((await buffer(read(car.file, car.dataCid))).equals(content), 'and read again when it is back')
})

t.test('what a CAR cannot give', async (t) => {
  const { car } = await packAll(newCar(t), [dealFile(['a', 'b'], Buffer.from('b'))])
  for (const [cid, message] of [
    [car.dataCid, /not part of a file/],
    [OF_FILES[0][1], /not in the CAR/],
    ['no cid', /no CID/],
  ] as const)
    await t.rejects(buffer(readFromCar(car.file, cid)), { ...notRetrievable, message })
})

t.test('names for keys', async (t) => {
  const never = (): boolean => false
  for (const key of ['a/b/c.txt', 'ünder/名前 ^ \\/x~folder-1', `${'x'.repeat(255)}/${'é'.repeat(127)}`])
    t.same(dagNames(key, never), key.split('/'), `${key} stays as it is`)
  t.match(dagNames('', never), [/^~file-[0-9a-f]{64}$/])
  t.match(dagNames('/a//', never), [/^~folder-/, 'a', /^~folder-/, /^~file-/])
  t.match(dagNames('a\0b', never), [/^a_b~file-/])
  t.match(dagNames('é'.repeat(128), never), [/^é{40}~file-/])
  const standIn = dagNames('..', never)[0] ?? ''
  t.not(dagNames(standIn, never)[0], standIn, 'a key that looks like a stand-in gets one itself')

  const part = fc.oneof(
    fc.constantFrom('', '.', '..', 'a', 'b', 'a!', 'ü', '\0', 'x'.repeat(300), standIn),
    fc.string({ unit: 'grapheme', maxLength: 3 }),
  )
  const key = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'))
  fc.assert(
    fc.property(fc.uniqueArray(key, { minLength: 1, maxLength: 60 }), (keys) => {
      const inOrder = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      const namesOf = dagNamesInOrder()
      const files = new Set<string>()
      const folders = new Map<string, number>()
      for (const [at, key] of inOrder.entries()) {
        const names = namesOf(key)
        assert.deepEqual(
          names,
          dagNames(key, (prefix) => keys.includes(prefix)),
        )
        for (const name of names) {
          assert.ok(
            name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && Buffer.byteLength(name) <= 255,
          )
        }
        const path = names.join('/')
        assert.ok(!files.has(path), 'no path twice')
        files.add(path)
        for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) {
          const folder = path.slice(0, end)
          const last = folders.get(folder)
          assert.ok(last === undefined || last === at - 1 || last === at, 'files of a folder come together')
          folders.set(folder, at)
        }
      }
      for (const folder of folders.keys()) assert.ok(!files.has(folder), 'no path is a folder as well')
    }),
    { numRuns: 200 },
  )
  const namesOf = dagNamesInOrder()
  namesOf('b')
  t.throws(() => namesOf('a'), { message: /came after "b"/ })
})
