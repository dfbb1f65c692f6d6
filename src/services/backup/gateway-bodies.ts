import { join } from 'node:path'
import type { Database } from '../database.js'

/** The files of bodies in the data folder of the services. Those that the index does not name are garbage. */
export const BODIES = join('gateway', 'objects')

/** Path of the index in the data folder of the services. */
export const INDEX = join('gateway', 'index.db')

export interface BodyFile {
  /** Below the data folder of the services. A file never changes under its name. */
  readonly path: string
  /** Bytes; undefined for a body without an object, that a pending deal reads. */
  readonly size: number | undefined
}

/**
 * The files that the index names.
 * @param since leaves out most files whose upload began before that time, ms since 1970; takes a moment however many
 * there are
 */
export function* bodyFiles(index: Database, since?: number): Iterable<BodyFile> {
  // Names begin with the time in nanoseconds, and `object_files` sorts by them.
  const first = since === undefined ? '' : (BigInt(Math.floor(since)) * 1_000_000n).toString(16).padStart(16, '0')
  const objects = index.prepare('SELECT generation, size FROM objects WHERE body_at = 0 AND generation > ?')
  for (const { generation, size } of objects.iterate(first))
    yield { path: pathOf(generation as string), size: Number(size) }
  if (since !== undefined) return
  for (const { generation } of index.prepare('SELECT generation FROM retained WHERE body_at = 0').iterate())
    yield { path: pathOf(generation as string), size: undefined }
}

function pathOf(generation: string): string {
  return join(BODIES, generation.slice(-2), generation)
}
