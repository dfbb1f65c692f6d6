/** Assumed bytes of an object per block of the packed file: smaller blocks need more headers and links. */
const BLOCK = 256 * 1024

/** Bytes for the header of a block in the CAR and for its link in the node above. */
const PER_BLOCK = 128

/** Bytes for the node of an object or folder and its name. */
const PER_OBJECT = 512

export const GIB = 1n << 30n

/**
 * Estimates the bytes of the piece of a deal: packed as a CAR, then padded to 128 for every 127 and to a power of two.
 */
export function estimatePieceSize(bytes: number, objects: number): number {
  const padded = paddedSize(bytes, objects)
  let size = MIN_PIECE
  while (size < padded) size *= 2
  return size
}

/** Smallest piece of the network, bytes: https://spec.filecoin.io/systems/filecoin_files/piece/ */
const MIN_PIECE = 128

export function paddedSize(bytes: number, objects: number): number {
  const packed = bytes + (Math.ceil(bytes / BLOCK) + 1) * PER_BLOCK + objects * PER_OBJECT
  return Math.ceil(packed / 127) * 128
}
