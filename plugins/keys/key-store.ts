import { type Identity, S3Error } from 'dealgate/plugin'

/** The key pairs of a server that its owner adds to its own. */
export interface KeyStore {
  /** Access key id of the owner, which is not among the others. */
  owner(): string
  all(): Promise<readonly Identity[]>
  /**
   * Changes them, at once for all processes that use the store. Rejects with what `edit` throws, without any change.
   * @param edit takes the present ones, and returns those to be, with what this resolves to
   */
  change<T>(edit: (present: readonly Identity[]) => readonly [readonly Identity[], T]): Promise<T>
  /** The secret key of an account of the gateway, where this server keeps its accounts. */
  accountSecret(accessKey: string): Promise<string | undefined>
}

/** The store, or S3Error NotImplemented where a program keeps the key pairs that this server accepts. */
export function known<T>(store: T | undefined): T {
  if (store !== undefined) return store
  throw new S3Error('NotImplemented', { message: 'This server does not keep them: they are managed elsewhere.' })
}

/**
 * Changes one key pair, or removes it if `edit` returns undefined. Resolves to it as it is now, or was. Throws S3Error
 * NoSuchEntity.
 */
export async function changeOne(
  store: KeyStore,
  accessKeyId: string,
  edit: (identity: Identity) => Identity | undefined,
): Promise<Identity> {
  if (accessKeyId === store.owner()) {
    throw new S3Error('InvalidRequest', { message: 'The key pair of the owner is changed by the options alone.' })
  }
  return store.change((present) => {
    const found = present.find((identity) => identity.accessKeyId === accessKeyId)
    if (!found) throw new S3Error('NoSuchEntity', { message: 'There is no key pair with this access key id.' })
    const changed = edit(found)
    return [present.flatMap((identity) => (identity === found ? (changed ?? []) : identity)), changed ?? found]
  })
}

/**
 * The account of the gateway that a new key pair acts as; undefined for that of the server. Throws S3Error
 * InvalidArgument unless both keys of the account are known.
 */
export async function accountOf(
  store: KeyStore,
  { AccountAccessKey: accessKey, AccountSecretKey: given }: { AccountAccessKey?: string; AccountSecretKey?: string },
): Promise<Identity['account']> {
  if (accessKey === undefined && given === undefined) return undefined
  const secretKey = given ?? (accessKey === undefined ? undefined : await store.accountSecret(accessKey))
  if (accessKey !== undefined && secretKey !== undefined) return { accessKey, secretKey }
  throw new S3Error('InvalidArgument', {
    message: 'The account is not one that this server keeps: AccountAccessKey and AccountSecretKey are both needed.',
    fields: { ArgumentName: 'AccountAccessKey' },
  })
}
