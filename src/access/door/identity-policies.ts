import type { Identity, Session } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { type Policy, parsePolicy } from '../decision/policy.js'

const parsed = new WeakMap<Identity, readonly Policy[]>()
const parsedSessions = new WeakMap<Session, Policy>()

/** Returns the policies of an identity; undefined if it has none. Throws AccessDenied if one cannot be read. */
export function policiesOf(identity: Identity): readonly Policy[] | undefined {
  if (!identity.policies) return undefined
  const known = parsed.get(identity)
  if (known) return known
  try {
    const policies = identity.policies.map((document) => parse(document))
    parsed.set(identity, policies)
    return policies
  } catch (cause) {
    throw new S3Error('AccessDenied', { cause })
  }
}

/**
 * Returns the policy of the session of an identity; undefined if it has none. Throws AccessDenied if it cannot be read.
 */
export function sessionPolicyOf({ session }: Identity): Policy | undefined {
  if (!session?.policy) return undefined
  const known = parsedSessions.get(session)
  if (known) return known
  try {
    const policy = parse(session.policy)
    parsedSessions.set(session, policy)
    return policy
  } catch (cause) {
    throw new S3Error('AccessDenied', { cause })
  }
}

/** True if documents of the identity itself, or of its session, decide what it may do. */
export function hasPolicies({ policies, session }: Identity): boolean {
  return policies !== undefined || session?.policy !== undefined
}

/**
 * Returns what is wrong with a policy of an identity; undefined if nothing is.
 * @param pluginActions see PolicyOptions; absent where the plugins of the server are not known
 */
export function identityPolicyProblem(document: unknown, pluginActions?: readonly string[]): string | undefined {
  try {
    parse(document, pluginActions)
    return undefined
  } catch (error) {
    if (error instanceof S3Error) return error.message
    throw error
  }
}

function parse(document: unknown, pluginActions?: readonly string[]): Policy {
  return parsePolicy(JSON.stringify(document), { kind: 'identity', ...(pluginActions && { pluginActions }) })
}
