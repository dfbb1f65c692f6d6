import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { sha256 } from '../support/content/content.js'

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

/**
 * Codes that were read back: the hash of the modules, by the length of the text. A change that makes other codes, by
 * another mask perhaps, has to show them to a reader of codes before it changes these.
 */
const READ_BACK: readonly (readonly [length: number, hash: string])[] = [
  [17, '631686aa7fd09b41'],
  [20, 'ede2aece5ac269d1'],
  [60, '7cdb2fee79d8e8b3'],
  [140, 'ad72e566d5abaa19'],
  [260, '5ebe0dc3a252f987'],
  [500, 'b5039b72b4ab01e0'],
  [990, 'ada888dd57874858'],
  [2950, '0202733098dcc5cb'],
]

t.test('codes are those that were read back', async (t) => {
  for (const [length, hash] of READ_BACK) {
    const text = `https://example.com/ä😀?${'aB3%2F-_.~&='.repeat(300)}`.slice(0, length)
    const rows = (qrCode(text) ?? []).map((row) => row.join(''))
    t.equal(sha256(rows.join('\n')).slice(0, 16), hash, `${length} characters`)
  }
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
