import type { Credentials, Identity } from './caller.js'

/** Printable ASCII without the comma, which ends a component of the Authorization header. */
const ACCESS_KEY_ID = /^[!-+\--~]{3,128}$/
const SECRET_ACCESS_KEY = /^[!-~]{8,256}$/

/**
 * A fixed set of key pairs.
 * @throws Error naming the key at fault (never the secret) if a key has the wrong shape or is given twice
 */
export function staticCredentials(identities: readonly Identity[]): Credentials {
  const byKey = new Map<string, Identity>()
  for (const identity of identities) {
    validateIdentity(identity)
    if (byKey.has(identity.accessKeyId)) {
      throw new Error(`The access key id ${JSON.stringify(identity.accessKeyId)} is given twice.`)
    }
    byKey.set(identity.accessKeyId, Object.freeze({ ...identity }))
  }
  return (accessKeyId) => byKey.get(accessKeyId)
}

function validateIdentity({ accessKeyId, secretAccessKey }: Identity): void {
  if (!ACCESS_KEY_ID.test(accessKeyId)) {
    throw new Error(
      `The access key id ${JSON.stringify(accessKeyId)} must be 3 to 128 printable ASCII characters without space and comma.`,
    )
  }
  if (!SECRET_ACCESS_KEY.test(secretAccessKey)) {
    throw new Error(
      `The secret access key of ${JSON.stringify(accessKeyId)} must be 8 to 256 printable ASCII characters without space.`,
    )
  }
}
