import type { Gateway } from '../../gateway/gateway.js'
import { MARKER_STAMP } from '../../gateway/object-facts.js'
import { validRecord } from '../../objects/join-record.js'
import { confirmed, isUnconfirmed } from '../../objects/unconfirmed.js'
import type { ObjectRecord } from '../../state/state.js'

/**
 * True if the record is about the present object: a write that needs no record leaves the one of the replaced object. A
 * record that still lacks its stamp counts, so that a restriction never lapses.
 */
export async function isCurrent(gateway: Pick<Gateway, 'stat'>, record: ObjectRecord): Promise<boolean> {
  const object = await gateway.stat(record.bucket, record.key)
  // A legacy gateway does not show the marker of a folder that has content.
  if (!object) return record.stamp === MARKER_STAMP
  const known = confirmed(object, record)
  return validRecord(object, known) !== undefined || isUnconfirmed(known, object)
}
