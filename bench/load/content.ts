import { createHash } from 'node:crypto'

/** Length after which the bytes of an object repeat. Not a power of two: a shifted block would not go unnoticed. */
export const PERIOD = 1_000_003

/** The bytes of an object before they repeat: different for each path. */
export function periodOf(path: string, size: number): Buffer {
  const seed = createHash('sha512').update(path).digest()
  return Buffer.alloc(Math.min(size, PERIOD), seed)
}

/** All bytes of a small object. */
export function contentOf(path: string, size: number): Buffer {
  if (size > PERIOD) throw new RangeError(`${size} bytes are no small object`)
  return periodOf(path, size)
}

/** SHA-256 of a small object, hex. */
export function contentHash(path: string, size: number): string {
  return createHash('sha256').update(contentOf(path, size)).digest('hex')
}
