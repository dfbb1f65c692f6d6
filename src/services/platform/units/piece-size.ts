/** Of 128 bytes of a piece, 127 are data (https://spec.filecoin.io/#section-systems.filecoin_files.piece). */
const DATA = 127
const PADDED = 128

/** Size of the piece that a CAR of so many bytes becomes: a power of two, at least 128. */
export function pieceSizeOf(carSize: number): number {
  const padded = Math.ceil(carSize / DATA) * PADDED
  let size = PADDED
  while (size < padded) size *= 2
  return size
}
