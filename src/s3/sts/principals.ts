import { createHash } from 'node:crypto'
import type { GatewayAccount, Identity } from '../../api/identity.js'
import type { State } from '../../api/state.js'
import { open, type SessionKey, seal } from './sealing.js'
import { isSessionId } from './session-token.js'

const PREFIX = 'platform/'

/** The account of a principal. */
interface PrincipalRecord {
  /** The secret key of the account, sealed; absent for the server's own account, whose keys the server has. */
  readonly sealed?: string
}

/**
 * The accounts that sessions were issued for. They outlive the sessions: jobs that a session has requested go on, and
 * documents that it has stored with a bucket stay valid.
 */
export class Principals {
  readonly #records
  readonly #key: SessionKey
  readonly #ownAccount: () => Promise<GatewayAccount>

  /** @param ownAccount the account of the server itself */
  constructor(state: Pick<State, 'records'>, key: SessionKey, ownAccount: () => Promise<GatewayAccount>) {
    this.#ownAccount = ownAccount
    this.#records = state.records<PrincipalRecord>('sts-principals')
    this.#key = key
  }

  /**
   * Keeps the current keys of an account. Durable on return. Throws S3Error ServiceUnavailable.
   * @param isOwn the account is the server's own
   */
  async keep(account: GatewayAccount, isOwn: boolean): Promise<void> {
    const key = await this.#key()
    const { accessKey, secretKey } = account
    await this.#records.change(accessKey, (kept) => {
      if (isOwn) return kept && kept.sealed === undefined ? kept : {}
      const known = kept?.sealed !== undefined && open(key, kept.sealed, accessKey) === secretKey
      return known ? kept : { sealed: seal(key, secretKey, accessKey) }
    })
  }

  /** Finds the identity of a principal by its name. Throws S3Error ServiceUnavailable. */
  async find(name: string): Promise<Identity | undefined> {
    if (!name.startsWith(PREFIX)) return undefined
    const accessKey = name.slice(PREFIX.length)
    const record = await this.#records.get(accessKey)
    if (!record) return undefined
    if (record.sealed === undefined) {
      const { secretKey } = await this.#ownAccount()
      return principal({ accessKey, secretKey }, true)
    }
    const secretKey = open(await this.#key(), record.sealed, accessKey)
    return secretKey === undefined ? undefined : principal({ accessKey, secretKey }, false)
  }
}

/** The name of all sessions of one gateway account, in place of an access key id: uploads and jobs belong to it. */
export function principalOf({ accessKey }: Pick<GatewayAccount, 'accessKey'>): string {
  return PREFIX + accessKey
}

/**
 * The identity of all sessions of one account; it has no key pair.
 * @param isOwn the account is the server's own
 */
export function principal(account: GatewayAccount, isOwn: boolean): Identity {
  return {
    accessKeyId: principalOf(account),
    secretAccessKey: '',
    accountKeyHash: createHash('sha256').update(account.secretKey).digest('hex'),
    ...(!isOwn && { account }),
  }
}

/** True for names that sessions have, and no key pair can have beside them. */
export function isNameOfSession(accessKeyId: string): boolean {
  return isSessionId(accessKeyId) || accessKeyId.startsWith(PREFIX)
}
