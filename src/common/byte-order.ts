/**
 * Order of two strings by their UTF-8 bytes, which is S3's order of keys. JavaScript's own compares UTF-16 units and puts
 * U+E000..U+FFFF after the astral characters. Same result as Buffer.compare, without encoding: surrogates sort above the rest of the BMP.
 */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i)
    let y = b.charCodeAt(i)
    if (x === y) continue
    if (x >= 0xd800 && y >= 0xd800) {
      // Above the surrogates UTF-16 order is wrong: lift surrogates over U+E000..U+FFFF.
      if (x >= 0xe000) x -= 0x800
      else x += 0x2000
      if (y >= 0xe000) y -= 0x800
      else y += 0x2000
    }
    return x - y
  }
  return a.length - b.length
}
