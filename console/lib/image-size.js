// How many pixels an image says it has: a small file may have so many that decoding it takes all memory.

const big = (bytes, at, length) => bytes.slice(at, at + length).reduce((sum, byte) => sum * 256 + byte, 0)
const little = (bytes, at, length) => bytes.slice(at, at + length).reduceRight((sum, byte) => sum * 256 + byte, 0)
const word = (bytes, at) => String.fromCharCode(...bytes.slice(at, at + 4))

/** @param bytes of an image of this type; @returns its pixels, Infinity where they are not known */
export function pixelsOf(bytes, type) {
  const [width, height] = SIZES[type]?.(bytes) ?? []
  return width > 0 && height > 0 ? width * height : Number.POSITIVE_INFINITY
}

const SIZES = {
  'image/png': (b) => [big(b, 16, 4), big(b, 20, 4)],
  'image/gif': (b) => [little(b, 6, 2), little(b, 8, 2)],
  'image/jpeg': jpegSize,
  'image/webp': webpSize,
  'image/avif': avifSize,
}

/** The first frame that says its size: segments are passed over by their lengths. */
function jpegSize(bytes) {
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; ) {
    const mark = bytes[at + 1]
    if (mark >= 0xc0 && mark <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(mark))
      return [big(bytes, at + 7, 2), big(bytes, at + 5, 2)]
    at += 2 + big(bytes, at + 2, 2)
  }
  return undefined
}

function webpSize(bytes) {
  const kind = word(bytes, 12)
  if (kind === 'VP8X') return [1 + little(bytes, 24, 3), 1 + little(bytes, 27, 3)]
  if (kind === 'VP8 ') return [little(bytes, 26, 2) & 0x3fff, little(bytes, 28, 2) & 0x3fff]
  const bits = little(bytes, 21, 4)
  return kind === 'VP8L' ? [1 + (bits % 16384), 1 + (Math.floor(bits / 16384) % 16384)] : undefined
}

/** The largest of the sizes that its boxes state. */
function avifSize(bytes) {
  let found
  for (let at = 0; at < Math.min(bytes.length, 65536) - 16; at++)
    if (bytes[at] === 0x69 && word(bytes, at) === 'ispe') {
      const size = [big(bytes, at + 8, 4), big(bytes, at + 12, 4)]
      if (found === undefined || size[0] * size[1] > found[0] * found[1]) found = size
    }
  return found
}
