import type { GatewayObject } from '../gateway/gateway.js'
import { unconfirmedStamp } from '../gateway/object-facts.js'
import type { ObjectRecord } from '../state/state.js'

/** True for a record that was stored while the gateway did not show the object: it lacks only the stamp. */
export function isUnconfirmed(record: ObjectRecord | undefined, { size }: Pick<GatewayObject, 'size'>): boolean {
  return record?.size === size && record.stamp.startsWith(unconfirmedStamp(''))
}

/**
 * The record with its stamp, once the gateway states that the object comes from the write that the record describes.
 */
export function confirmed<R extends ObjectRecord | undefined>(object: GatewayObject, record: R): R {
  if (!record || object.writeId === undefined || record.size !== object.size) return record
  return record.stamp === unconfirmedStamp(object.writeId) ? { ...record, stamp: object.stamp } : record
}
