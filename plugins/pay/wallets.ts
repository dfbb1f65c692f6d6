import { createHash } from 'node:crypto'
import type { Identity, PluginHost, Records } from 'dealgate'

/** When a JWT expires, ms since 1970; undefined for one that does not state it. */
export function expiryOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return Number.isSafeInteger(exp) && exp > 0 && exp < 1e11 ? exp * 1000 : undefined
  } catch {
    // Not a JWT.
    return undefined
  }
}

/** The sign-in of a wallet. */
interface WalletSession {
  /** As the sign-in named it, in lower case. */
  readonly address: string
  /** Name of the chain environment. */
  readonly network: string
  readonly token: string
  /** When the token expires, ms since 1970, if it states that. */
  readonly until?: number
}

interface Kept {
  /** JSON of a WalletSession, sealed. */
  readonly sealed: string
  /** ms since 1970. */
  readonly stored: number
}

/**
 * The wallets that identities have linked, sealed. A session belongs to an access key with its secret: a key pair that
 * gets another secret, or is made anew under the same id, does not inherit it.
 */
export class Wallets {
  readonly #records: Records<Kept>
  readonly #host: Pick<PluginHost, 'sealer' | 'now'>

  constructor(host: PluginHost) {
    this.#host = host
    this.#records = host.state.records('pay-sessions')
  }

  /** Undefined for none, also for one that this server cannot decrypt. */
  async get(identity: Identity): Promise<WalletSession | undefined> {
    const kept = await this.#records.get(identity.accessKeyId)
    const text = kept && (await this.#host.sealer.open(kept.sealed, purposeOf(identity)))
    return text === undefined ? undefined : (JSON.parse(text) as WalletSession)
  }

  /** Durable when it resolves. Throws S3Error if secrets cannot be sealed here. */
  async link(identity: Identity, session: WalletSession): Promise<void> {
    const sealed = await this.#host.sealer.seal(JSON.stringify(session), purposeOf(identity))
    await this.#records.set(identity.accessKeyId, { sealed, stored: this.#host.now() })
  }

  /** Forgets a session, unless another has replaced it meanwhile. */
  async forget(identity: Identity, { token }: WalletSession): Promise<void> {
    const known = await this.#records.get(identity.accessKeyId)
    if (!known || (await this.get(identity))?.token !== token) return
    await this.#records.change(identity.accessKeyId, (kept) => (kept?.sealed === known.sealed ? undefined : kept))
  }
}

function purposeOf({ accessKeyId, secretAccessKey }: Identity): string {
  return `pay:session:${accessKeyId}:${createHash('sha256').update(secretAccessKey).digest('hex')}`
}
