import type { Identity } from 'dealgate/plugin'

/** The user as which the owner of a server acts that runs the task platform itself. */
export interface OwnerUser {
  /** True for the key pair of the owner, and its sessions. */
  is(identity: Identity): boolean
  /** A JWT of the user, as a sign-in gives it; undefined while there is none. */
  token(): Promise<string | undefined>
}
