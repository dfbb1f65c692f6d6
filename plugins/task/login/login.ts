import { createHash } from 'node:crypto'
import type { Identity, PluginHost, Records } from 'dealgate'

/** What signs an identity in to the task platform. Has at least one of its members. */
export interface Login {
  readonly signIn?: { readonly email: string; readonly password: string }
  readonly apiKey?: { readonly apikey: string; readonly accessToken: string }
}

interface Kept {
  /** JSON of a Login, sealed. */
  readonly sealed: string
  /** ms since 1970. */
  readonly stored: number
}

/**
 * The log-ins that identities have stored, sealed. A log-in belongs to an access key with its secret, or to the account
 * of temporary credentials with its secret: what gets another secret, or is made anew under the same id, does not
 * inherit it.
 */
export class Logins {
  readonly #records: Records<Kept>
  readonly #host: Pick<PluginHost, 'sealer' | 'now'>

  constructor(host: PluginHost) {
    this.#host = host
    this.#records = host.state.records('task-logins')
  }

  /** Undefined for none, also for one that this server cannot decrypt. */
  async get(identity: Identity): Promise<Login | undefined> {
    const kept = await this.#records.get(identity.accessKeyId)
    const text = kept && (await this.#host.sealer.open(kept.sealed, purposeOf(identity)))
    return text === undefined ? undefined : (JSON.parse(text) as Login)
  }

  /** Adds to the log-in of the identity. Durable when it resolves. Throws S3Error if secrets cannot be sealed here. */
  async add(identity: Identity, part: Login): Promise<void> {
    await this.#put(identity, { ...(await this.get(identity)), ...part })
  }

  /** Forgets a part of the log-in, unless it has been replaced meanwhile. */
  async forget(identity: Identity, part: Login): Promise<void> {
    const login = await this.get(identity)
    if (login === undefined) return
    const others = Object.entries(login).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(part[name as keyof Login]),
    )
    if (others.length === 0) await this.#records.delete(identity.accessKeyId)
    else await this.#put(identity, Object.fromEntries(others))
  }

  async #put(identity: Identity, login: Login): Promise<void> {
    const sealed = await this.#host.sealer.seal(JSON.stringify(login), purposeOf(identity))
    await this.#records.set(identity.accessKeyId, { sealed, stored: this.#host.now() })
  }
}

function purposeOf(identity: Identity): string {
  return `task:login:${identity.accessKeyId}:${secretHashOf(identity)}`
}

/** Hash of the secret key that an identity signs with, or of that of its account if it has none, hex. */
export function secretHashOf({ secretAccessKey, accountKeyHash }: Identity): string {
  return accountKeyHash ?? createHash('sha256').update(secretAccessKey).digest('hex')
}
