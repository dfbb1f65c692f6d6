/**
 * Compares two strings by their UTF-8 bytes, which is S3's order of keys. JavaScript compares UTF-16 units instead and
 * puts U+E000..U+FFFF after the astral characters. Same result as Buffer.compare, but without encoding: surrogates sort
 * above the rest of the BMP.
 */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i)
    let y = b.charCodeAt(i)
    if (x === y) continue
    if (x >= 0xd800 && y >= 0xd800) {
      // UTF-16 order is wrong above the surrogates: move them above U+E000..U+FFFF.
      if (x >= 0xe000) x -= 0x800
      else x += 0x2000
      if (y >= 0xe000) y -= 0x800
      else y += 0x2000
    }
    return x - y
  }
  return a.length - b.length
}
