// https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki, in lower case, without its limit of length

const CHARACTERS = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

export function bech32(prefix: string, bytes: Uint8Array): string {
  const values = regrouped(bytes, 8, 5)
  const head = expanded(prefix)
  const check = checksum([...head, ...values, 0, 0, 0, 0, 0, 0]) ^ 1
  const all = [...values, ...[25, 20, 15, 10, 5, 0].map((shift) => (check >> shift) & 31)]
  return `${prefix}1${all.map((value) => CHARACTERS[value]).join('')}`
}

/** The 32 bytes in a text with this prefix; undefined for a text that is none, or has others. */
export function keyInBech32(prefix: string, text: string): Buffer | undefined {
  if (!text.startsWith(`${prefix}1`)) return undefined
  const values = [...text.slice(prefix.length + 1)].map((character) => CHARACTERS.indexOf(character))
  if (values.includes(-1) || checksum([...expanded(prefix), ...values]) !== 1) return undefined
  const key = Buffer.from(regrouped(values.slice(0, -6), 5, 8).slice(0, 32))
  // Any other text of the key is refused, so that each key has one text.
  return bech32(prefix, key) === text ? key : undefined
}

function expanded(prefix: string): number[] {
  const letters = [...prefix].map((letter) => letter.charCodeAt(0))
  return [...letters.map((code) => code >> 5), 0, ...letters.map((code) => code & 31)]
}

/** Numbers of `from` bits as such of `to` bits; zeros fill the last one. */
function regrouped(values: Iterable<number>, from: number, to: number): number[] {
  const found: number[] = []
  let held = 0
  let bits = 0
  for (const value of values) {
    held = (held << from) | value
    for (bits += from; bits >= to; bits -= to) found.push((held >> (bits - to)) & ((1 << to) - 1))
    held &= (1 << bits) - 1
  }
  if (bits > 0) found.push((held << (to - bits)) & ((1 << to) - 1))
  return found
}

const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]

function checksum(values: readonly number[]): number {
  let sum = 1
  for (const value of values) {
    const top = sum >> 25
    sum = ((sum & 0x1ffffff) << 5) ^ value
    for (const [i, generator] of GENERATORS.entries()) if ((top >> i) & 1) sum ^= generator
  }
  return sum
}
