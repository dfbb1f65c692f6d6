/** Blocks of the packed file are taken to hold so much of an object each: the less, the more goes into headers and links. Bytes. */
const BLOCK = 256 * 1024
/** Header of a block in the CAR, and the link to it in the node above. Bytes. */
const PER_BLOCK = 128
/** Node of an object or folder and its name. Bytes. */
const PER_OBJECT = 512

/** The smallest piece of the network, bytes: https://spec.filecoin.io/systems/filecoin_files/piece/ */
const SMALLEST = 128

/** About how many bytes the piece of a deal has: packed as a CAR, then padded to 128 for every 127 and to a power of two. */
export function estimatePieceSize(bytes: number, objects: number): number {
  const packed = bytes + (Math.ceil(bytes / BLOCK) + 1) * PER_BLOCK + objects * PER_OBJECT
  const padded = Math.ceil(packed / 127) * 128
  let size = SMALLEST
  while (size < padded) size *= 2
  return size
}

const UNITS: Readonly<Record<string, number>> = { '': 0, b: 0, k: 1, m: 2, g: 3, t: 4, p: 5 }

/** Bytes of a size as providers tell theirs: `34359738368`, `32GiB`, `16GB`, which on this network are powers of two all the same. Undefined for what is no size. */
export function readSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([bkmgtp]?)(?:i?b)?\s*$/i.exec(text) ?? []
  const power = UNITS[unit.toLowerCase()]
  return digits === undefined || power === undefined ? undefined : Number(digits) * 1024 ** power
}
