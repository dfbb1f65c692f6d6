import { type Malformed, parseCredential, parseSignedHeaders } from './parsed-signature.js'

type Credential = ReturnType<typeof parseCredential>

/** Most texts of each kind; beyond them all are forgotten. */
const MOST = 1024

/**
 * Parts of the signatures of earlier requests, parsed: a client signs with one credential all day, and the same headers
 * in requests of one kind.
 */
export class RememberedParts {
  readonly #credentials = new Map<string, Credential>()
  readonly #signedHeaders = new Map<string, readonly string[]>()

  /** See parseCredential. */
  credential(text: string, malformed: Malformed): Credential {
    const known = this.#credentials.get(text)
    return known ?? remember(this.#credentials, text, parseCredential(text, malformed))
  }

  /** See parseSignedHeaders. */
  signedHeaders(list: string, malformed: Malformed): readonly string[] {
    const known = this.#signedHeaders.get(list)
    return known ?? remember(this.#signedHeaders, list, parseSignedHeaders(list, malformed))
  }
}

function remember<T>(all: Map<string, T>, text: string, parsed: T): T {
  if (all.size >= MOST) all.clear()
  all.set(text, parsed)
  return parsed
}
