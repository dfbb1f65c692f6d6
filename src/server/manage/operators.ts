import { S3Error, slowDown } from '../../../common/errors/s3-error.js'
import type { Caller } from '../../api/identity.js'
import type { State } from '../../api/state.js'
import { hashOf } from '../../plugins/calls/prepare.js'

/** Throws AccessDenied for a caller with an account of its own: what the server keeps for others is not for it. */
export function requireOwnAccount(caller: Caller | undefined): void {
  if (!caller || caller.identity.account) refuse("Only key pairs of the server's own account may do this.")
}

/**
 * Throws AccessDenied for sessions, too: one that is stolen ends, and must leave nothing behind, such as other keys or
 * another configuration.
 */
export function requireLastingKey(caller: Caller | undefined): void {
  requireOwnAccount(caller)
  if (caller?.identity.session) {
    refuse('A session may not do this: a lasting key pair of the account of the server must sign the request itself.')
  }
}

/** Throws AccessDenied for a key pair that has less than all rights, too: it could give itself more. */
function requireWholeKey(caller: Caller | undefined): void {
  requireLastingKey(caller)
  const { rights, policies } = caller?.identity ?? {}
  if (rights || policies) refuse('Only a key pair with all rights of the account of the server may do this.')
}

/** A signature in the headers is good for half an hour at most; ms. */
const REMEMBER_MS = 60 * 60_000

/** Most signatures of one key pair that are remembered: their record is read and written as a whole. */
const MAX_SIGNATURES = 2000

interface Signatures {
  /** Hashes of signatures, with the times of their requests, ms since 1970. */
  readonly seen: readonly { readonly hash: string; readonly at: number }[]
}

/**
 * Admits a change of keys or accounts by a key pair with all rights, once per signature: a captured request that is
 * sent again could give back what was removed since. Throws AccessDenied, DuplicateRequest, SlowDown and others.
 */
export type AdmitOperator = (caller: Caller | undefined) => Promise<void>

/** @param state the whole one, not that of an operation */
export function admission(state: Pick<State, 'records'>): AdmitOperator {
  const records = state.records<Signatures>('change-signatures')
  return async (caller) => {
    requireWholeKey(caller)
    if (!caller?.proof) return
    if (caller.authType === 'REST-QUERY-STRING') {
      refuse('A presigned URL may not do this: sign the request in its headers.')
    }
    const hash = hashOf(caller.proof.signature)
    const at = Date.now()
    await records.change(hashOf(caller.identity.accessKeyId), (present) => {
      const seen = (present?.seen ?? []).filter((one) => one.at > at - REMEMBER_MS)
      if (seen.some((one) => one.hash === hash)) throw repeated()
      if (seen.length >= MAX_SIGNATURES) throw slowDown('Too many changes within an hour: try again later.')
      return { seen: [...seen, { hash, at }] }
    })
  }
}

function repeated(): S3Error {
  return new S3Error('DuplicateRequest', {
    message:
      'This signed request was already carried out. To repeat the call, sign a new request at least a second later.',
  })
}

function refuse(message: string): never {
  throw new S3Error('AccessDenied', { message })
}
