import type { Credentials, Identity } from './caller.js'
import { identitySchema, placeOf } from './identity-schema.js'

/**
 * A fixed set of key pairs.
 * @throws Error naming the key at fault (never the secret) if an identity has the wrong shape or its access key id is given twice
 */
export function staticCredentials(identities: readonly Identity[]): Credentials {
  const byKey = new Map<string, Identity>()
  for (const given of identities) {
    const identity = checked(given)
    if (byKey.has(identity.accessKeyId)) {
      throw new Error(`The access key id ${JSON.stringify(identity.accessKeyId)} is given twice.`)
    }
    byKey.set(identity.accessKeyId, identity)
  }
  return (accessKeyId) => byKey.get(accessKeyId)
}

function checked({ accessKeyId, secretAccessKey, account, rights, actions }: Identity): Identity {
  const result = identitySchema.safeParse({ accessKeyId, secretAccessKey, account, rights, actions })
  if (result.success) return Object.freeze(result.data)
  const problems = result.error.issues.map(({ path, message }) => `${placeOf(path).replace(/^\./, '')} ${message}`)
  throw new Error(`The identity of access key id ${JSON.stringify(accessKeyId)}: ${problems.join('; ')}.`)
}
