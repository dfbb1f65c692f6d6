import type { Credentials, Identity } from '../caller.js'
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
