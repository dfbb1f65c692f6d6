/**
 * Computes the CRC of two concatenated pieces from the CRC of each and the length of the second: CRC(AB) = CRC(A) *
 * x^(8 * length of B) + CRC(B) over GF(2), for CRCs that start from all ones and are inverted at the end. After Mark
 * Adler's crc32_combine: https://github.com/madler/zlib/blob/develop/crc32.c
 */
export class CrcCombiner {
  readonly #polynomial: bigint
  /** The polynomial 1: in reflected form, its only bit is the highest. */
  readonly #one: bigint
  /** x^(2^n) at index n. */
  readonly #powers: bigint[]
  #lastLength = -1
  #lastShift = 0n

  /** @param polynomial reflected, without its highest term */
  constructor(polynomial: bigint, width: 32 | 64) {
    this.#polynomial = polynomial
    this.#one = 1n << BigInt(width - 1)
    this.#powers = [this.#one >> 1n]
  }

  /** @param secondLength bytes, a safe integer */
  combine(first: bigint, second: bigint, secondLength: number): bigint {
    return this.#multiply(this.#shift(secondLength), first) ^ second
  }

  /** x^(8 * bytes). All parts of an upload but the last have the same length, so the last result is cached. */
  #shift(bytes: number): bigint {
    if (bytes !== this.#lastLength) {
      let shift = this.#one
      let rest = bytes
      for (let n = 3; rest > 0; n++, rest = Math.floor(rest / 2)) {
        if (rest % 2 === 1) shift = this.#multiply(shift, this.#power(n))
      }
      this.#lastLength = bytes
      this.#lastShift = shift
    }
    return this.#lastShift
  }

  #power(n: number): bigint {
    for (let i = this.#powers.length; i <= n; i++) {
      const half = this.#powers[i - 1] as bigint
      this.#powers.push(this.#multiply(half, half))
    }
    return this.#powers[n] as bigint
  }

  /** a * b modulo the polynomial. */
  #multiply(a: bigint, b: bigint): bigint {
    let product = 0n
    let rest = a
    let shifted = b
    for (let bit = this.#one; rest !== 0n; bit >>= 1n) {
      if (rest & bit) {
        product ^= shifted
        rest ^= bit
      }
      shifted = shifted & 1n ? (shifted >> 1n) ^ this.#polynomial : shifted >> 1n
    }
    return product
  }
}
