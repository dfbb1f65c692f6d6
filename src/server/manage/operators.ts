import type { Caller } from '../../api/identity.js'
import { S3Error } from '../../common/errors/s3-error.js'

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
export function requireWholeKey(caller: Caller | undefined): void {
  requireLastingKey(caller)
  const { rights, policies } = caller?.identity ?? {}
  if (rights || policies) refuse('Only a key pair with all rights of the account of the server may do this.')
}

function refuse(message: string): never {
  throw new S3Error('AccessDenied', { message })
}
