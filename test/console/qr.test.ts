import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'

type Code = readonly (readonly number[])[]

const { qrCode, qrPath } = (await import(pathToFileURL(resolve('console', 'parts/qr.js')).href)) as {
  qrCode(text: string): Code | undefined
  qrPath(code: Code): string
}

/** Bytes that a code of each version holds at most with correction L: ISO/IEC 18004, table 7. */
const CAPACITIES = [
  ...[17, 32, 53, 78, 106, 134, 154, 192, 230, 271, 321, 367, 425, 458, 520, 586, 644, 718, 792, 858],
  ...[929, 1003, 1091, 1171, 1273, 1367, 1465, 1528, 1628, 1732, 1840, 1952, 2068, 2188, 2303, 2431],
  ...[2563, 2699, 2809, 2953],
]

/** Of versions: centres of alignment patterns (annex E), codewords of each block, and of its correction (table 9). */
const LAYOUTS: Readonly<Record<number, { centres: number[]; data: number[]; correction: number }>> = {
  1: { centres: [], data: [19], correction: 7 },
  2: { centres: [6, 18], data: [34], correction: 10 },
  4: { centres: [6, 26], data: [80], correction: 20 },
  6: { centres: [6, 34], data: [68, 68], correction: 18 },
  7: { centres: [6, 22, 38], data: [78, 78], correction: 20 },
  10: { centres: [6, 28, 50], data: [68, 68, 69, 69], correction: 18 },
  15: { centres: [6, 26, 48, 70], data: [...Array(5).fill(87), 88], correction: 22 },
  22: { centres: [6, 26, 50, 74, 98], data: [111, 111, ...Array(7).fill(112)], correction: 28 },
  32: { centres: [6, 34, 60, 86, 112, 138], data: Array(17).fill(115), correction: 30 },
  40: {
    centres: [6, 30, 58, 86, 114, 142, 170],
    data: [...Array(19).fill(118), ...Array(6).fill(119)],
    correction: 30,
  },
}

/** Table 10. */
const MASKS: readonly ((i: number, j: number) => boolean)[] = [
  (i, j) => (i + j) % 2 === 0,
  (i) => i % 2 === 0,
  (_, j) => j % 3 === 0,
  (i, j) => (i + j) % 3 === 0,
  (i, j) => ((i >> 1) + Math.trunc(j / 3)) % 2 === 0,
  (i, j) => (i * j) % 6 === 0,
  (i, j) => (i * j) % 6 < 3,
  (i, j) => (((i + j) % 2) + ((i * j) % 3)) % 2 === 0,
]

/** Powers of the root 2 in the field of 256 elements. */
const POWERS = Array.from({ length: 255 }).reduce<number[]>(
  (powers) => [...powers, ((powers.at(-1) ?? 0) << 1) ^ ((powers.at(-1) ?? 0) > 127 ? 285 : 0)],
  [1],
)

t.test('a code that is read back is the text', async (t) => {
  for (const [version, text] of [
    [1, 'http://localhost'],
    [2, 'https://example.com/'],
    [4, `https://example.com/ä😀?${'a'.repeat(30)}`],
    ...[120, 154, 271, 500, 1000, 1900, 2953].map(
      (length, i) => [[6, 7, 10, 15, 22, 32, 40][i], 'aB3%2F-_.~&='.repeat(300).slice(0, length)] as const,
    ),
  ] as const)
    readBack(t, version ?? 0, text)
})

t.test('the smallest version is taken', async (t) => {
  for (const [i, capacity] of CAPACITIES.entries()) {
    const code = qrCode('x'.repeat(capacity)) ?? []
    t.same([...new Set([code, ...code].map(({ length }) => length))], [21 + 4 * i], `${capacity} bytes`)
  }
  for (const version of [1, 9, 26])
    t.equal(qrCode('x'.repeat((CAPACITIES[version - 1] ?? 0) + 1))?.length, 21 + 4 * version, 'one byte more')
  t.equal(qrCode('x'.repeat(2954)), undefined)
})

t.test('the path', async (t) => {
  const rows = [
    [1, 1, 0],
    [0, 0, 0],
    [1, 0, 1],
  ]
  t.equal(qrPath(rows), 'M4 4h2v1h-2zM4 6h1v1h-1zM6 6h1v1h-1z', 'has a margin of four modules')
})

function readBack(t: Test, version: number, text: string): void {
  const code = qrCode(text) ?? []
  const layout = LAYOUTS[version]
  if (!layout) throw new Error(`no layout of ${version}`)
  const size = code.length
  t.equal(size, 17 + 4 * version, `${text.length} characters`)
  const bit = (y: number, x: number) => code[y]?.[x] ?? Number.NaN
  const pattern = patternsOf(size, layout.centres)
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++) {
      const wanted = pattern(y, x)
      if (typeof wanted === 'number' && wanted !== bit(y, x)) t.fail(`module ${y}, ${x} is no part of its pattern`)
    }
  const range = (from: number, to: number) =>
    Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => from + Math.sign(to - from) * i)
  const beside = [...range(0, 5), 7, 8].map((x) => bit(8, x)).concat([7, ...range(5, 0)].map((y) => bit(y, 8)))
  const apart = range(size - 1, size - 7)
    .map((y) => bit(y, 8))
    .concat(range(size - 8, size - 1).map((x) => bit(8, x)))
  t.same(beside, apart, 'the format is there twice')
  const format = numberOf(beside) ^ 0b101010000010010
  t.equal(remainderOf(format, 0b10100110111), 0, 'and is sound')
  t.equal(format >> 13, 0b01, 'correction L')
  if (version >= 7) {
    const places = range(17, 0).map((i) => [Math.floor(i / 3), size - 11 + (i % 3)] as const)
    for (const word of [numberOf(places.map(([y, x]) => bit(y, x))), numberOf(places.map(([y, x]) => bit(x, y)))]) {
      t.equal(word >> 12, version)
      t.equal(remainderOf(word, 0b1111100100101), 0, 'the version is sound')
    }
  }
  const mask = MASKS[(format >> 10) & 7]
  if (!mask) throw new Error('no mask')
  const bits: number[] = []
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right--
    const upwards = ((size - 1 - right + (right < 6 ? -1 : 0)) / 2) % 2 === 0
    for (const y of upwards ? range(size - 1, 0) : range(0, size - 1))
      for (const x of [right, right - 1]) if (pattern(y, x) === undefined) bits.push(bit(y, x) ^ (mask(y, x) ? 1 : 0))
  }
  const words = Array.from({ length: bits.length >> 3 }, (_, i) => numberOf(bits.slice(8 * i, 8 * i + 8)))
  const blocks = blocksOf(words, layout.data, layout.correction)
  t.same(
    blocks.flatMap(({ all }) => syndromes(all, layout.correction)).filter((value) => value !== 0),
    [],
    'no codeword is wrong',
  )
  t.equal(
    textOf(
      blocks.flatMap(({ data }) => data),
      version,
    ),
    text,
  )
}

/** What the modules of the patterns are: a number if it is the same in every code, null if not. */
function patternsOf(size: number, centres: readonly number[]): (y: number, x: number) => number | null | undefined {
  const far = size - 7
  const corners = [
    [3, 3],
    [3, size - 4],
    [size - 4, 3],
  ] as const
  const aligned = centres.flatMap((y) => centres.map((x) => [y, x] as const))
  const free = aligned.filter(([y, x]) => !((y === 6 && (x === 6 || x === far)) || (x === 6 && y === far)))
  return (y, x) => {
    const away = (centre: readonly [number, number]) => Math.max(Math.abs(y - centre[0]), Math.abs(x - centre[1]))
    for (const corner of corners) if (away(corner) <= 4) return [1, 1, 0, 1, 0][away(corner)]
    for (const centre of free) if (away(centre) <= 2) return [1, 0, 1][away(centre)]
    if (y === 6 || x === 6) return (y + x + 1) % 2
    if (y === size - 8 && x === 8) return 1
    if ((y === 8 && (x <= 8 || x >= size - 8)) || (x === 8 && (y <= 8 || y >= size - 8))) return null
    if (size >= 45 && ((y < 6 && x >= size - 11) || (x < 6 && y >= size - 11))) return null
    return undefined
  }
}

function numberOf(bits: readonly number[]): number {
  return Number.parseInt(bits.join(''), 2)
}

function remainderOf(value: number, polynomial: number): number {
  const bits = (number: number) => number.toString(2).length
  let rest = value
  while (rest !== 0 && bits(rest) >= bits(polynomial)) rest ^= polynomial << (bits(rest) - bits(polynomial))
  return rest
}

/** Codewords are interleaved: the first one of each block, then the second, and all corrections after all data. */
function blocksOf(words: readonly number[], lengths: readonly number[], correction: number) {
  const left = [...words]
  const blocks = lengths.map((length) => ({ length, data: [] as number[], all: [] as number[] }))
  for (let i = 0; i < Math.max(...lengths); i++)
    for (const { length, data } of blocks) if (i < length) data.push(left.shift() ?? Number.NaN)
  for (const block of blocks) block.all.push(...block.data)
  for (let i = 0; i < correction; i++) for (const { all } of blocks) all.push(left.shift() ?? Number.NaN)
  return blocks
}

function syndromes(words: readonly number[], count: number): number[] {
  const times = (a: number, b: number) =>
    a === 0 || b === 0 ? 0 : (POWERS[(POWERS.indexOf(a) + POWERS.indexOf(b)) % 255] ?? Number.NaN)
  return Array.from({ length: count }, (_, i) => words.reduce((sum, word) => times(sum, POWERS[i] ?? 0) ^ word, 0))
}

function textOf(data: readonly number[], version: number): string {
  const bits = data.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  if (!bits.startsWith('0100')) throw new Error('the mode is not that of bytes')
  const counted = version < 10 ? 8 : 16
  const length = Number.parseInt(bits.slice(4, 4 + counted), 2)
  const bytes = bits.slice(4 + counted, 4 + counted + 8 * length).match(/.{8}/g) ?? []
  return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 2)))
}
