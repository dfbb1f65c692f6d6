import { isDeepStrictEqual } from 'node:util'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Caller, Session } from '../../api/identity.js'

/** Most policies that limit one job: each decision about it asks all of them. */
const MAX_POLICIES = 10

/** The session whose policy limits what the caller orders; undefined for a caller that no session policy limits. */
export function sessionOf(caller: Caller | undefined): Session | undefined {
  const session = caller?.identity.session
  if (!session?.policy) return undefined
  // A job may outlive the credentials.
  const { expires: _, ...lasting } = session
  return lasting
}

/**
 * The session of a job after `by` has had it run again, or go on: the job may do what the policies of both allow.
 * @throws S3Error InvalidRequest after ten different policies
 */
export function narrowed(session: Session | undefined, by: Session | undefined): Session | undefined {
  if (!by?.policy || !session?.policy) return session?.policy ? session : by
  const policies = [session.policy, ...(session.narrowed ?? [])]
  const added = [by.policy, ...(by.narrowed ?? [])].filter(
    (one) => !policies.some((two) => isDeepStrictEqual(one, two)),
  )
  if (added.length === 0) return session
  const [, ...others] = [...policies, ...added]
  if (others.length >= MAX_POLICIES) {
    throw new S3Error('InvalidRequest', {
      message: `The policies of ${MAX_POLICIES} sessions limit the job already: order another one.`,
    })
  }
  return { ...session, narrowed: others }
}
