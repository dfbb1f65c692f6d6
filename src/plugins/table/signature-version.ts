import type { Caller } from '../../auth/caller.js'
import { isCoveredParameter, VERSION_2 } from '../../auth/signatures/sigv2.js'
import { unsupportedAlgorithm } from '../../auth/signatures/unsupported.js'
import type { AnyOperation } from '../forms/plugin.js'

/** `list-type` selects a form of the listing that the signed path names. */
const FORMS = ['list-type']

/**
 * Refuses signature version 2 for everything that S3 itself does not have: the signature covers neither sub-resources
 * of extensions nor the body, so that a holder of it could choose another call, or other terms.
 * @throws S3Error InvalidRequest
 */
export function refuseVersion2({ on, call }: AnyOperation, caller: Caller | undefined): void {
  if (caller?.signatureVersion !== VERSION_2) return
  const names = (on.query ?? []).map((wanted) => wanted.split('=')[0] ?? '')
  const covered = names.every((name) => isCoveredParameter(name) || FORMS.includes(name))
  const ownPath = on.resource === 'service' && (on.path ?? '/') !== '/'
  if (call || ownPath || !covered) throw unsupportedAlgorithm(VERSION_2)
}
