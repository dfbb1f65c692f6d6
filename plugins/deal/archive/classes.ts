import type { StorageClass } from 'dealgate'
import { ARCHIVE_CLASSES } from '../configuration.js'
import type { DealParts } from '../parts.js'
import { OBJECT_DEAL, OFFLINE_DEAL } from '../records/inputs.js'
import { admit } from './admit.js'
import { readThrough } from './read-through.js'
import { restore } from './restore.js'
import { Transitions } from './transitions.js'

/**
 * The storage classes whose objects are kept by deals, and the words that map to one of them. The gateway may evict its
 * copy of an object in GLACIER once a deal holds it; an object in GLACIER_IR keeps its local copy. Objects in
 * DEEP_ARCHIVE are held by the next offline deal of their bucket.
 */
export function archiveClasses(parts: DealParts): readonly StorageClass[] {
  const map = parts.options.storageClassMap
  const words = new Set([...ARCHIVE_CLASSES, ...Object.keys(map)])
  const transitions = new Transitions(parts)
  return [...words].map((word) => ({
    name: word,
    action: (map[word] ?? word) === 'DEEP_ARCHIVE' ? OFFLINE_DEAL : OBJECT_DEAL,
    admit: (write, context) => admit(parts, word, write, context),
    transition: (object) => transitions.move(word, object),
    restore: (object, order, context) => restore(parts, object, order, context),
    missed: (object) => readThrough(parts, object),
  }))
}
