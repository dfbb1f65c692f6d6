// QR codes (ISO/IEC 18004) in byte mode with error correction L: a screen is not damaged as paper is, and fewer modules are
// larger ones. A code is an array of rows of 0 and 1, where 1 is dark.
import { html } from '../lib/html.js'

/** Light modules that a reader needs around a code. */
const QUIET = 4
/** Of a module, on a screen that is wide enough. */
const PIXELS = 3

/** Of each version from 1 to 40: codewords of error correction in a block, and blocks. */
const CORRECTION = [
  ...[7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28],
  ...[28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30],
]
const BLOCKS = [
  ...[1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8],
  ...[8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25],
]

const MASKS = [
  (y, x) => (y + x) % 2,
  (y) => y % 2,
  (_, x) => x % 3,
  (y, x) => (y + x) % 3,
  (y, x) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2,
  (y, x) => ((y * x) % 2) + ((y * x) % 3),
  (y, x) => (((y * x) % 2) + ((y * x) % 3)) % 2,
  (y, x) => (((y + x) % 2) + ((y * x) % 3)) % 2,
]

/** A text as a QR code. @param title tells screen readers what it contains */
export function QrCode({ text, title }) {
  const code = qrCode(text)
  if (code === undefined) return html`<p class="quiet">This text is too long for a QR code.</p>`
  const side = code.length + 2 * QUIET
  const width = side * PIXELS
  return html`<svg class="qr" role="img" viewBox=${`0 0 ${side} ${side}`} width=${width} height=${width}>
    <title>${title}</title>
    <path d=${qrPath(code)} />
  </svg>`
}

/** The dark modules of a code as one path, each run of them in a row as a rectangle. */
export function qrPath(code) {
  const rectangles = (row, y) =>
    [...row.join('').matchAll(/1+/g)].map(
      ({ index, 0: { length } }) => `M${index + QUIET} ${y + QUIET}h${length}v1h-${length}z`,
    )
  return code.flatMap(rectangles).join('')
}

/** The smallest code of a text, with the mask that readers like best; undefined if it has more than 2,953 bytes. */
export function qrCode(text) {
  const bytes = new TextEncoder().encode(text)
  const version = BLOCKS.findIndex((_, i) => bytes.length + (i < 9 ? 2 : 3) <= dataCodewords(i + 1)) + 1
  if (version === 0) return undefined
  const code = patterns(version)
  const fixed = code.map((row) => row.map((bit) => bit !== undefined))
  place(code, inBlocks(version, dataOf(version, bytes)))
  const masked = MASKS.map((mask, number) => {
    const rows = code.map((row, y) => row.map((bit, x) => (fixed[y][x] || mask(y, x) !== 0 ? bit : 1 - bit)))
    placeFormat(rows, number)
    return { rows, penalty: penaltyOf(rows) }
  })
  return masked.reduce((best, other) => (other.penalty < best.penalty ? other : best)).rows
}

/** Codewords of data that fit: of the modules that no pattern takes, less those of error correction. */
function dataCodewords(version) {
  const size = 17 + 4 * version
  const along = alignments(version).length
  const aligned = along && (along ** 2 - 3) * 25 - (along - 2) * 10
  const modules = size ** 2 - 3 * 64 - 31 - 2 * (size - 16) - aligned - (version < 7 ? 0 : 36)
  return Math.floor(modules / 8) - CORRECTION[version - 1] * BLOCKS[version - 1]
}

/** The centres of alignment patterns along a side. */
function alignments(version) {
  if (version === 1) return []
  const [size, gaps] = [17 + 4 * version, Math.floor(version / 7) + 1]
  // The standard has its own distance for version 32.
  const step = version === 32 ? 26 : Math.ceil((size - 13) / gaps / 2) * 2
  return [6, ...Array.from({ length: gaps }, (_, i) => size - 7 - (gaps - 1 - i) * step)]
}

/** Mode, length, bytes and padding. */
function dataOf(version, bytes) {
  const length = bytes.length.toString(2).padStart(version < 10 ? 8 : 16, '0')
  const bits = `0100${length}${Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('')}0000`
  const data = bits.match(/.{8}/g).map((byte) => Number.parseInt(byte, 2))
  for (let i = 0; data.length < dataCodewords(version); i++) data.push(i % 2 === 0 ? 0xec : 0x11)
  return data
}

/** The data in blocks with their error correction, the first codewords of all blocks first. */
function inBlocks(version, data) {
  const [count, correction] = [BLOCKS[version - 1], CORRECTION[version - 1]]
  const [short, firstLong] = [Math.floor(data.length / count), count - (data.length % count)]
  const start = (block) => block * short + Math.max(0, block - firstLong)
  const blocks = Array.from({ length: count }, (_, i) => data.slice(start(i), start(i + 1)))
  const corrections = blocks.map((block) => remainder(block, generator(correction)))
  return [...columnsOf(blocks), ...columnsOf(corrections)]
}

function columnsOf(blocks) {
  return blocks.at(-1).flatMap((_, i) => blocks.flatMap((block) => (i < block.length ? [block[i]] : [])))
}

/** The product in the field of 256 elements, modulo x^8 + x^4 + x^3 + x^2 + 1. */
function times(a, b) {
  let product = 0
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ (product > 127 ? 0x11d : 0) ^ ((b >> bit) & 1 ? a : 0)
  return product
}

/** The product of (x - 2^i) for i below the degree; its coefficients without the first, which is 1. */
function generator(degree) {
  let polynomial = [1]
  for (let i = 0, root = 1; i < degree; i++, root = times(root, 2))
    polynomial = [...polynomial, 0].map((value, at) => value ^ (at > 0 ? times(polynomial[at - 1], root) : 0))
  return polynomial.slice(1)
}

function remainder(data, divisor) {
  const rest = divisor.map(() => 0)
  for (const value of data) {
    const factor = value ^ rest.shift()
    rest.push(0)
    for (const [i, coefficient] of divisor.entries()) rest[i] ^= times(coefficient, factor)
  }
  return rest
}

/** A code whose modules for data are undefined. */
function patterns(version) {
  const size = 17 + 4 * version
  const code = Array.from({ length: size }, () => Array(size).fill())
  const set = (y, x, dark) => {
    if (y in code && x in code) code[y][x] = dark ? 1 : 0
  }
  /** Squares around a centre; `light` are those that are not dark. */
  const squares = (cy, cx, radius, light) => {
    for (let y = -radius; y <= radius; y++)
      for (let x = -radius; x <= radius; x++) set(cy + y, cx + x, !light.includes(Math.max(Math.abs(y), Math.abs(x))))
  }
  for (let i = 0; i < size; i++) {
    set(6, i, i % 2 === 0)
    set(i, 6, i % 2 === 0)
  }
  const centres = alignments(version)
  const corner = (y, x) => [y, x].every((at) => at === 6 || at === size - 7) && (y === 6 || x === 6)
  for (const y of centres) for (const x of centres) if (!corner(y, x)) squares(y, x, 2, [1])
  squares(3, 3, 4, [2, 4])
  squares(3, size - 4, 4, [2, 4])
  squares(size - 4, 3, 4, [2, 4])
  placeFormat(code, 0)
  const word = withCheck(version, 12, 0x1f25)
  for (let i = 0; version >= 7 && i < 18; i++) {
    const [near, far] = [Math.floor(i / 3), size - 11 + (i % 3)]
    set(near, far, (word >> i) & 1)
    set(far, near, (word >> i) & 1)
  }
  return code
}

/** Error correction and mask, twice, and the dark module. */
function placeFormat(code, mask) {
  const size = code.length
  const word = withCheck(0b01000 | mask, 10, 0x537) ^ 0x5412
  for (let i = 0; i < 15; i++) {
    const bit = (word >> i) & 1
    // Around the timing patterns, which cross at 6.
    if (i < 8) code[i < 6 ? i : i + 1][8] = code[8][size - 1 - i] = bit
    else code[8][i === 8 ? 7 : 14 - i] = code[size - 15 + i][8] = bit
  }
  code[size - 8][8] = 1
}

/** A number, followed by so many bits of the remainder of its division by a polynomial. */
function withCheck(value, bits, polynomial) {
  let rest = value << bits
  for (let at = 31 - Math.clz32(rest); at >= bits; at = 31 - Math.clz32(rest)) rest ^= polynomial << (at - bits)
  return (value << bits) | rest
}

/** Fills two columns at a time, from the right, upwards and downwards in turn. */
function place(code, codewords) {
  const size = code.length
  let at = 0
  for (let right = size - 1, up = true; right > 0; right -= right === 8 ? 3 : 2, up = !up)
    for (let step = 0; step < size; step++)
      for (const x of [right, right - 1]) {
        const y = up ? size - 1 - step : step
        if (code[y][x] !== undefined) continue
        code[y][x] = (codewords[at >> 3] >> (7 - (at & 7))) & 1
        at++
      }
}

/** How hard a code is to read: runs and squares of one colour, what looks like a corner, and too much of one colour. */
function penaltyOf(rows) {
  const lines = [...rows, ...rows.map((_, x) => rows.map((row) => row[x]))].map((line) => line.join(''))
  let penalty = 0
  for (const line of lines) {
    for (const [{ length }] of line.matchAll(/0{5,}|1{5,}/g)) penalty += length - 2
    penalty += 40 * [...line.matchAll(/(?=10111010000|00001011101)/g)].length
  }
  let dark = 0
  for (const [y, row] of rows.entries())
    for (const [x, bit] of row.entries()) {
      dark += bit
      const below = rows[y + 1]
      if (below && bit === row[x + 1] && bit === below[x] && bit === below[x + 1]) penalty += 3
    }
  return penalty + 10 * Math.floor(Math.abs((dark / rows.length ** 2) * 20 - 10))
}
