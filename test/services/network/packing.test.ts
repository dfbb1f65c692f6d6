import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CarReader, CarWriter } from '@ipld/car'
import * as dagPb from '@ipld/dag-pb'
import fc from 'fast-check'
import { CID } from 'multiformats/cid'
import t, { type Test } from 'tap'
import { type Car, type DealFile, NetworkError, type PackedFile } from '../../../src/services/network/network.js'
import {
  createCommit,
  createReadFromCar,
  dagNames,
  dagNamesInOrder,
  pack,
} from '../../../src/services/network/pack/index.js'
import { CHUNK_BYTES, chunkedCid, type Folder, fileCid, folderCid } from './second-chunker.js'
import { murmur3 } from './second-murmur.js'
import { pieceRoot } from './second-piece.js'
import { verifyStream } from './verify-stream.js'

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

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const newCar = (t: Test): string => join(t.testdir(), 'deal.car')

const notRetrievable = { name: 'NetworkError', code: 'NotRetrievable' }

t.test('files have the CIDs of the second chunker, and come back out of the CAR', async (t) => {
  const sizes = [0, 1, 255, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 3 * CHUNK_BYTES + 77]
  for (const size of sizes) {
    const content = randomBytes(size)
    const { car, packed } = await packAll(join(t.testdir(), 'deal.car'), [dealFile([], content)])
    const cid = fileCid(content)
    t.equal(car.dataCid, cid, `${size} bytes`)
    t.same(packed, [{ path: [], size, cid }])
    t.equal(car.size, statSync(car.file).size)
    t.ok((await collect(readFromCar(car.file, cid))).equals(content))
    t.ok((await collect(verifyStream(inPieces(content), cid))).equals(content))
  }
  t.equal(
    fileCid(Buffer.from('hello world')),
    'bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e',
    'and the second chunker that of everybody',
  )
})

t.test('a file of more than 1024 chunks has a second level of nodes', async (t) => {
  const chunk = randomBytes(CHUNK_BYTES)
  const end = randomBytes(5)
  const chunks = [...Array<Uint8Array>(1025).fill(chunk), end]
  let length = 0
  for await (const { length: count } of verifyStream(each(chunks), chunkedCid(chunks))) length += count
  t.equal(length, 1025 * CHUNK_BYTES + 5)
})

t.test('folders keep their nesting', async (t) => {
  const b = randomBytes(CHUNK_BYTES + 3)
  const folder: Folder = {
    'a.txt': Buffer.from('a'),
    empty: Buffer.alloc(0),
    folder: { b, 'back\\': { slash: Buffer.from('c') }, 'ünder ^ x': { deep: { deeper: b.subarray(1) } } },
    z: Buffer.from('a'),
  }
  const { car, packed } = await packAll(newCar(t), filesOf(folder))
  t.equal(car.dataCid, folderCid(folder))
  const reader = await CarReader.fromBytes(readFileSync(car.file))
  t.same((await reader.getRoots()).map(String), [car.dataCid], 'the header names the root')
  t.ok(await reader.get(CID.parse(car.dataCid)), 'which is there')
  for (const { path, size, cid } of packed) {
    t.equal((await collect(readFromCar(car.file, cid))).length, size, path.join('/'))
  }
  const none = await packAll(newCar(t), [])
  t.equal(none.car.dataCid, folderCid({}), 'a deal of no files is an empty folder')
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
  const twice = randomBytes(2 * CHUNK_BYTES + 9)
  const many = Array.from({ length: 1000 }, (_, at): [string, Uint8Array] => [
    `${at}`.padStart(240, '-'),
    Buffer.from('x'),
  ])
  const nested: Folder = { a: twice, b: { again: twice, c: { d: Buffer.from('x') } }, many: Object.fromEntries(many) }
  // A file with the bytes of a node: same digest, another block.
  const { car: small } = await packAll(newCar(t), filesOf({ f: { g: Buffer.from('g') } }))
  const node = await (await CarReader.fromBytes(readFileSync(small.file))).get(CID.parse(small.dataCid))
  const mimic: Folder = { a: node?.bytes ?? new Uint8Array(), z: { f: { g: Buffer.from('g') } } }
  for (const folder of [nested, mimic, {}]) {
    const { car } = await packAll(newCar(t), filesOf(folder))
    t.equal(car.dataCid, folderCid(folder))
    const reader = await CarReader.fromBytes(readFileSync(car.file))
    const order: string[] = []
    for await (const cid of reader.cids()) order.push(cid.toString())
    t.ok(order.join() === (await exported(reader, CID.parse(car.dataCid))).join(), `${order.length} blocks`)
    t.equal(order[0], car.dataCid)
    t.equal(car.size, statSync(car.file).size)
    t.notOk(existsSync(`${car.file}.blocks`), 'nothing else is left')
  }
  const { car } = await packAll(newCar(t), filesOf(mimic))
  t.equal((await collect(readFromCar(car.file, fileCid(Buffer.from('g'))))).toString(), 'g', 'beneath the node, too')
})

t.test('any tree has the CID of the second chunker', async (t) => {
  const target = newCar(t)
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 8 })
    .filter((name) => !/^\.{1,2}$|[/\0]/.test(name))
  const { tree } = fc.letrec<{ tree: Folder; held: Folder | Uint8Array }>((tie) => ({
    tree: fc.dictionary(name, tie('held'), { minKeys: 1, maxKeys: 5, noNullPrototype: true }),
    held: fc.oneof({ depthSize: 'small' }, fc.uint8Array({ maxLength: 20 }), tie('tree')),
  }))
  await fc.assert(
    fc.asyncProperty(tree, async (folder) => {
      const { car, packed } = await packAll(target, filesOf(folder))
      assert.equal(car.dataCid, folderCid(folder))
      for (const { cid, size } of packed) assert.equal((await collect(readFromCar(target, cid))).length, size)
    }),
    { numRuns: 60 },
  )
})

function* filesOf(folder: Folder, path: readonly string[] = []): Iterable<DealFile> {
  for (const [name, held] of Object.entries(folder)) {
    if (held instanceof Uint8Array) yield dealFile([...path, name], held)
    else if (typeof held !== 'function') yield* filesOf(held, [...path, name])
  }
}

t.test('a directory of more than 256 KiB is sharded like that of the second chunker', async (t) => {
  /** Long names, so that few of them make a directory that large: each takes 48 bytes more than the name. */
  const numbered = (count: number, length: number): string[] =>
    Array.from({ length: count }, (_, at) => `${at}`.padStart(length, '-'))
  for (const count of [900, 920]) {
    const names = numbered(count, 240)
    const folder: Folder = { large: Object.fromEntries(names.map((name) => [name, Buffer.from(name)])) }
    const { car, packed } = await packAll(newCar(t), filesOf(folder))
    t.equal(car.dataCid, folderCid(folder), `${count} files`)
    for (const { path, cid } of packed.filter((_, at) => at % 100 === 0)) {
      assert.equal((await collect(readFromCar(car.file, cid))).toString(), path[1])
    }
  }
  // Two names with the same hash, as anybody can make them.
  const alike = ['0123456789abcdefghijklmnopqrstuv', 'xxxxxxxxxx257668QCAJ(\t@q\b\bIk\u0011\u0017%\u001e']
  t.same(murmur3(Buffer.from(alike[0] ?? '')), murmur3(Buffer.from(alike[1] ?? '')))
  const folders: Folder = Object.fromEntries(
    [...alike, ...numbered(1000, 240)].map((name) => [name, { 'a file': Buffer.from(name) }]),
  )
  const { car } = await packAll(newCar(t), filesOf(folders))
  t.equal(car.dataCid, folderCid(folders), 'and directories in it count as well')
  let largest = 0
  for await (const { bytes } of (await CarReader.fromBytes(readFileSync(car.file))).blocks()) {
    largest = Math.max(largest, bytes.length)
  }
  t.ok(largest < 64 * 1024, `no block is larger than a shard: ${largest}`)
})

t.test('the limit of a directory in one block is that of the second chunker, to the byte', async (t) => {
  for (const more of [-2, -1, 0, 1, 2]) {
    // 255 names of 1000 characters, and one that fills up what is left of 256 KiB; a file of one byte: 36 of CID, 10 of
    // fields.
    const names = Array.from({ length: 249 }, (_, at) => `${at}`.padStart(1000, '-'))
    const block = 4 + 249 * (1000 + 48)
    const left = 256 * 1024 - block - 48
    names.push('x'.repeat(left + more))
    const folder: Folder = Object.fromEntries(names.map((name) => [name, Buffer.from('x')]))
    const { car } = await packAll(newCar(t), filesOf(folder))
    t.equal(car.dataCid, folderCid(folder), `${more} bytes`)
  }
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
    ['others beside a root', [dealFile([], content), file], /must be its only file/],
    ...['', '.', '..', 'x/y', 'x\0y', '\ud800'].map((name): [string, Iterable<DealFile>, RegExp] => [
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
  await t.rejects(packAll(join(target, 'nowhere', 'x.car'), [file]), { code: 'ENOENT' })
})

t.test('a disk that is full fails the packing', { skip: !existsSync('/dev/full') }, async (t) => {
  const target = newCar(t)
  symlinkSync('/dev/full', target)
  await t.rejects(packAll(target, [dealFile([], randomBytes(40 * CHUNK_BYTES))]), { code: 'ENOSPC' })
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
  await t.rejects(packAll(target, [], { signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
  t.notOk(existsSync(target))
})

t.test('progress counts bytes and files', async (t) => {
  const told: [number, number][] = []
  const files = [randomBytes(3 * CHUNK_BYTES), randomBytes(10)].map((content, at) => dealFile([`${at}`], content))
  await packAll(newCar(t), files, { onProgress: (...now) => void told.push(now) })
  t.same(told.at(-1), [3 * CHUNK_BYTES + 10, 2])
  t.ok(told.some(([bytes, done]) => bytes > CHUNK_BYTES && bytes < 3 * CHUNK_BYTES && done === 0))
})

t.test('many small files leave everybody else a turn now and then', async (t) => {
  const files = Array.from({ length: 400 }, (_, index) => dealFile([String(index)], Buffer.from(`${index}`)))
  let done = 0
  let before = 0
  let most = 0
  let running = true
  const turn = (): void => {
    most = Math.max(most, done - before)
    before = done
    if (running) setImmediate(turn)
  }
  setImmediate(turn)
  const onProgress = (_: number, count: number): void => {
    done = count
  }
  await packAll(newCar(t), files, { onProgress })
  running = false
  t.equal(done, files.length)
  t.ok(most <= 16, `${most} files between two turns`)
})

t.test('pieces', async (t) => {
  const file = join(t.testdir(), 'piece')
  writeFileSync(file, Buffer.alloc(127))
  t.same(
    await commit(file, {}),
    { pieceCid: 'baga6ea4seaqdomn3tgwgrh3g532zopskstnbrd2n3sxfqbze7rxt7vqn7veigmy', pieceSize: 128 },
    'the one of zeros that is known to everybody',
  )
  for (const size of [0, 1, 64, 65, 126, 127, 128, 254, 255, 4064, 4065, 100_000, 1_300_000]) {
    const content = randomBytes(size)
    writeFileSync(file, content)
    const expected = pieceRoot(content)
    const { pieceCid, pieceSize } = await commit(file, {})
    t.equal(pieceSize, expected.size, `size of ${size} bytes`)
    const cid = CID.parse(pieceCid)
    t.equal(Buffer.from(cid.multihash.digest).toString('hex'), expected.root, `root of ${size} bytes`)
    t.match(pieceCid, /^baga6ea4sea/)
  }
  const told: number[] = []
  writeFileSync(file, Buffer.alloc(3 * CHUNK_BYTES))
  await commit(file, { onProgress: (bytes) => void told.push(bytes) })
  t.same(
    told,
    [1, 2, 3].map((count) => count * CHUNK_BYTES),
  )
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
  await t.rejects(commit(file, { signal: AbortSignal.abort(new Error('before')) }), { message: 'before' })
  await t.rejects(commit(join(file, 'nowhere'), {}), { code: 'ENOTDIR' })
  await t.rejects(commit(`${file}-gone`, {}), { code: 'ENOENT' })

  const contents = Array.from({ length: 5 }, (_, n) => randomBytes(1000 * 2 ** n))
  const pieces = contents.map(async (content, n) => {
    writeFileSync(`${file}-${n}`, content)
    const { pieceCid, pieceSize: size } = await commit(`${file}-${n}`, {})
    return { root: Buffer.from(CID.parse(pieceCid).multihash.digest).toString('hex'), size }
  })
  t.same(
    await Promise.all(pieces),
    contents.map(pieceRoot),
    'several at a time, after what was given up and what failed',
  )
})

t.test('damage in a CAR is found before any byte of it is given', async (t) => {
  const content = randomBytes(2 * CHUNK_BYTES + 5)
  const { car } = await packAll(newCar(t), [dealFile([], content)])
  const whole = readFileSync(car.file)
  const read = createReadFromCar()
  t.ok((await collect(read(car.file, car.dataCid))).equals(content))

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

  for (const length of [0, 1, 30, 59, 60, 1000, CHUNK_BYTES, whole.length - 1]) {
    writeFileSync(car.file, whole.subarray(0, length))
    await t.rejects(collect(read(car.file, car.dataCid)), notRetrievable, `cut to ${length} bytes`)
  }
  writeFileSync(car.file, whole)
  appendFileSync(car.file, Buffer.from([0x80]))
  await t.rejects(collect(read(car.file, car.dataCid)), notRetrievable, 'with half a section behind')

  writeFileSync(car.file, whole)
  const running = read(car.file, car.dataCid)[Symbol.asyncIterator]()
  await running.next()
  truncateSync(car.file, CHUNK_BYTES + 500)
  await t.rejects(
    (async () => {
      while (!(await running.next()).done);
    })(),
    notRetrievable,
    'cut while it is read',
  )
  await t.rejects(collect(read(`${car.file}.gone`, car.dataCid)), notRetrievable, 'gone')
  writeFileSync(car.file, whole)
  t.ok((await collect(read(car.file, car.dataCid))).equals(content), 'and read again when it is back')
})

t.test('what a CAR cannot give', async (t) => {
  const { car, packed } = await packAll(newCar(t), [dealFile(['a', 'b'], Buffer.from('b'))])
  await t.rejects(collect(readFromCar(car.file, car.dataCid)), { ...notRetrievable, message: /not part of a file/ })
  await t.rejects(collect(readFromCar(car.file, fileCid(Buffer.from('x')))), {
    ...notRetrievable,
    message: /not in the CAR/,
  })
  await t.rejects(collect(readFromCar(car.file, 'no cid')), { ...notRetrievable, message: /no CID/ })
  const cid = packed[0]?.cid ?? ''
  await t.rejects(collect(readFromCar(car.file, cid, AbortSignal.abort(new Error('given up')))), {
    message: 'given up',
  })
})

t.test('blocks that are in a CAR more than once, or only once for two places', async (t) => {
  const content = Buffer.alloc(3 * CHUNK_BYTES, 'same')
  const { car } = await packAll(newCar(t), [dealFile([], content)])
  t.ok((await collect(readFromCar(car.file, car.dataCid))).equals(content))
  const reader = await CarReader.fromBytes(readFileSync(car.file))
  const seen = new Set<string>()
  const { writer, out } = CarWriter.create(await reader.getRoots())
  const written = collect(out)
  for await (const block of reader.blocks()) {
    if (!seen.has(block.cid.toString())) void writer.put(block)
    seen.add(block.cid.toString())
  }
  await writer.close()
  const once = `${car.file}.once`
  writeFileSync(once, await written)
  t.equal(seen.size, 2)
  t.ok((await collect(readFromCar(once, car.dataCid))).equals(content))
})

t.test('indexes of more CARs than may be kept', async (t) => {
  const read = createReadFromCar(1)
  const target = newCar(t)
  const files = Array.from({ length: 500 }, (_, at) => dealFile([`${at}`], Buffer.from(`${at}`)))
  const { car, packed } = await packAll(target, files)
  copyFileSync(car.file, `${target}.2`)
  for (const { cid, path } of packed.slice(0, 5)) {
    const both = await Promise.all([target, `${target}.2`, target].map((file) => collect(read(file, cid))))
    t.same(both.map(String), Array(3).fill(path[0]))
  }
})

t.test('streams that are not what they should be', async (t) => {
  const content = randomBytes(2 * CHUNK_BYTES)
  const cid = fileCid(content)
  await t.rejects(collect(verifyStream(inPieces(content.subarray(1)), cid)), {
    ...notRetrievable,
    message: /have the root/,
  })
  await t.rejects(collect(verifyStream(inPieces(content), 'no cid')), notRetrievable)
  await t.rejects(
    collect(
      verifyStream(
        (async function* () {
          yield content.subarray(0, 10)
          throw new Error('connection lost')
        })(),
        cid,
      ),
    ),
    { message: 'connection lost' },
  )
  for await (const chunk of verifyStream(inPieces(content), cid)) {
    t.equal(chunk.length, 70_001, 'and one that is left early')
    break
  }
})

t.test('names for keys', async (t) => {
  const never = (): boolean => false
  for (const key of [
    'a',
    'a/b/c.txt',
    'ünder/名前 ^ \\/x~folder-1',
    '-/...',
    `${'x'.repeat(255)}/${'é'.repeat(127)}`,
  ]) {
    t.same(dagNames(key, never), key.split('/'), `${key} stays as it is`)
  }
  t.match(dagNames('', never), [/^~file-[0-9a-f]{64}$/])
  t.match(dagNames('/a//', never), [/^~folder-/, 'a', /^~folder-/, /^~file-/])
  t.match(dagNames('../.', never), [/^\.\.~folder-/, /^\.~file-/])
  t.match(dagNames('a\0b', never), [/^a_b~file-/])
  t.match(dagNames('é'.repeat(128), never), [/^é{40}~file-/])
  t.match(
    dagNames('a/b/c', (prefix) => prefix === 'a/b'),
    ['a', /^b~folder-[0-9a-f]{64}$/, 'c'],
  )
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
  t.throws(() => namesOf('b'), { message: /came after "b"/ })
})
