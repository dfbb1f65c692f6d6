import { createHash } from 'node:crypto'
import type { Credentials, Identity } from '../api/identity.js'
import { identitySchema, type PolicyProblem, placeOf, policyProblems } from './identity-schema.js'

/**
 * Looks up key pairs in a fixed list.
 * @throws Error that names the access key id (never the secret) if an identity is invalid or an id is repeated
 */
export function staticCredentials(
  identities: readonly Identity[],
  policyProblem: PolicyProblem = () => undefined,
): Credentials {
  const byKey = new Map<string, Identity>()
  for (const given of identities) {
    const identity = checked(given, policyProblem)
    if (byKey.has(identity.accessKeyId)) {
      throw new Error(`The access key id ${JSON.stringify(identity.accessKeyId)} is given twice.`)
    }
    byKey.set(identity.accessKeyId, identity)
  }
  return (accessKeyId) => byKey.get(accessKeyId)
}

function checked(
  { accessKeyId, secretAccessKey, account, rights, actions, policies }: Identity,
  policyProblem: PolicyProblem,
): Identity {
  const result = identitySchema.safeParse({ accessKeyId, secretAccessKey, account, rights, actions, policies })
  const wrong = result.success ? policyProblems(result.data, policyProblem) : []
  if (result.success && wrong.length === 0) return Object.freeze(result.data)
  const problems = result.success
    ? wrong.map((problem) => problem.slice(1))
    : result.error.issues.map(({ path, message }) => `${placeOf(path).replace(/^\./, '')} ${message}`)
  throw new Error(`The identity of access key id ${JSON.stringify(accessKeyId)}: ${problems.join('; ')}.`)
}

/** The writer of an object without a log-in, as S3 names it. */
export const ANONYMOUS_ID = '65a011a29cdf8ec533ec3d1ccaae921c'

/** The hash by which clients know an account or a key pair: 64 hexadecimal digits, stable, without any secret. */
export function idOf(text: string): string {
  return createHash('sha256').update(`dealgate:${text}`).digest('hex')
}

/** Canonical id of the server's own account. */
export const OWN_ID = idOf('account:')

/** Canonical id of the gateway account that an identity acts as: one for all its key pairs. */
export function canonicalId({ account }: Pick<Identity, 'account'>): string {
  return account === undefined ? OWN_ID : idOf(`account:${account.accessKey}`)
}

/** Names of gateway accounts, by their canonical ids. */
export class AccountNames {
  // The access key of the server's own account can change.
  readonly #names = new Map([[OWN_ID, 'dealgate']])
  readonly #learned = new WeakSet<Identity>()

  learn(identity: Identity): void {
    if (identity.account === undefined || this.#learned.has(identity)) return
    this.#learned.add(identity)
    this.#names.set(canonicalId(identity), identity.account.accessKey)
  }

  /** Undefined for an account of which no key pair was learned. */
  of(canonicalId: string): string | undefined {
    return this.#names.get(canonicalId)
  }
}
