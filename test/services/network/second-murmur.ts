/** The first 64 bits of murmur3-x64-128 without a seed, highest byte first. */
export function murmur3(data: Buffer): Buffer {
  let h1 = 0n
  let h2 = 0n
  const whole = data.length - (data.length % 16)
  for (let at = 0; at < whole; at += 16) {
    h1 ^= first(data.readBigUInt64LE(at))
    h1 = wrap(wrap(rotate(h1, 27n) + h2) * 5n + 0x52dce729n)
    h2 ^= second(data.readBigUInt64LE(at + 8))
    h2 = wrap(wrap(rotate(h2, 31n) + h1) * 5n + 0x38495ab5n)
  }
  const tail = Buffer.alloc(16)
  data.copy(tail, 0, whole)
  h2 ^= second(tail.readBigUInt64LE(8))
  h1 ^= first(tail.readBigUInt64LE(0))
  h1 ^= BigInt(data.length)
  h2 ^= BigInt(data.length)
  h1 = wrap(h1 + h2)
  h2 = wrap(h2 + h1)
  const hash = Buffer.alloc(8)
  hash.writeBigUInt64BE(wrap(mix(h1) + mix(h2)))
  return hash
}

const C1 = 0x87c37b91114253d5n
const C2 = 0x4cf5ad432745937fn

const wrap = (value: bigint): bigint => BigInt.asUintN(64, value)
const rotate = (value: bigint, bits: bigint): bigint => wrap(value << bits) | (value >> (64n - bits))
const first = (k: bigint): bigint => wrap(rotate(wrap(k * C1), 31n) * C2)
const second = (k: bigint): bigint => wrap(rotate(wrap(k * C2), 33n) * C1)

function mix(value: bigint): bigint {
  let k = value
  k = wrap((k ^ (k >> 33n)) * 0xff51afd7ed558ccdn)
  k = wrap((k ^ (k >> 33n)) * 0xc4ceb9fe1a85ec53n)
  return k ^ (k >> 33n)
}
