export const GIB = 1n << 30n

/** Assumed bytes of an object per block of the packed file: smaller blocks need more headers and links. */
const BLOCK = 256 * 1024
/** Bytes for the header of a block in the CAR and for its link in the node above. */
const PER_BLOCK = 128
/** Bytes for the node of an object or folder and its name. */
const PER_OBJECT = 512

/** Smallest piece of the network, bytes: https://spec.filecoin.io/systems/filecoin_files/piece/ */
const SMALLEST = 128

/** Smallest sector in which providers keep the data of others, bytes: a piece of this size fits into any. */
const SMALLEST_SECTOR = 512 * 1024 * 1024

/**
 * Estimates the bytes of the piece of a deal: packed as a CAR, then padded to 128 for every 127 and to a power of two.
 */
export function estimatePieceSize(bytes: number, objects: number): number {
  const padded = paddedSize(bytes, objects)
  let size = SMALLEST
  while (size < padded) size *= 2
  return size
}

/**
 * Estimates the most that the pieces of an offline deal have together, bytes. The gateway may divide the objects into
 * several CARs, and pads each to a power of two, up to twice its size: seven objects a little larger than half a CAR
 * are seven pieces as large as a whole one. Content that fits into the smallest pieces of providers is one CAR.
 */
export function mostPieceBytes(bytes: number, objects: number): number {
  const one = estimatePieceSize(bytes, objects)
  return objects <= 1 || one <= SMALLEST_SECTOR ? one : 2 * paddedSize(bytes, objects)
}

function paddedSize(bytes: number, objects: number): number {
  const packed = bytes + (Math.ceil(bytes / BLOCK) + 1) * PER_BLOCK + objects * PER_OBJECT
  return Math.ceil(packed / 127) * 128
}

const UNITS: Readonly<Record<string, number>> = { '': 0, b: 0, k: 1, m: 2, g: 3, t: 4, p: 5 }

/**
 * Parses a size as providers give it, to bytes: `34359738368`, `32GiB` or `16GB`; all units are powers of two on this
 * network. Undefined for any other text.
 */
export function readSize(text: string): number | undefined {
  const [, digits, unit = ''] = /^\s*(\d+(?:\.\d+)?)\s*([bkmgtp]?)(?:i?b)?\s*$/i.exec(text) ?? []
  const power = UNITS[unit.toLowerCase()]
  return digits === undefined || power === undefined ? undefined : Number(digits) * 1024 ** power
}
