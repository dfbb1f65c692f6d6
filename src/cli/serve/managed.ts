import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import type { AccountStore } from '../../server/manage/account-calls.js'
import type { KeyStore } from '../../server/manage/key-calls.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { changeCredentials, credentialsPath, readCredentials } from '../keys/credentials-file.js'
import { generateKeys } from '../keys/keys.js'

/** Loads what opens the database of the gateway when it is needed. */
const accounts = () => import('../keys/accounts.js')

/**
 * The key pairs in the credentials file, which every process of the server follows.
 * @param config the one in force
 * @param owner access key id of the owner
 */
export function keyStore(config: () => Config, owner: () => string, log: Logger): KeyStore {
  return {
    owner,
    all: () => inWords(log, () => readCredentials(credentialsPath(config()))),
    change: (edit) =>
      inWords(log, async () => {
        let outcome: { readonly of: ReturnType<typeof edit>[1] } | undefined
        await changeCredentials(credentialsPath(config()), (present) => {
          const [next, of] = edit(present)
          outcome = { of }
          return next
        })
        if (outcome === undefined) throw new Error('the credentials file was changed without its edit')
        return outcome.of
      }),
    async accountSecret(accessKey) {
      if (config().gatewayUrl !== undefined) return undefined
      const { withinAccounts } = await accounts()
      const all = await inWords(log, async () => withinAccounts(config(), { create: false }, (book) => book.all()))
      return all.find((account) => account.isIamUser && account.accessKey === accessKey)?.secretKey
    },
  }
}

/** The accounts of the embedded gateway, in its data folder, which it follows; undefined with another gateway. */
export function accountStore(config: () => Config, log: Logger): AccountStore | undefined {
  if (config().gatewayUrl !== undefined) return undefined
  const file = () => credentialsPath(config())
  return {
    async all() {
      const { shownAccount, withinAccounts } = await accounts()
      return inWords(log, async () =>
        withinAccounts(config(), { create: false }, (book) => book.all()).map(shownAccount),
      )
    },
    async add(accessKey, name) {
      const { withinAccounts } = await accounts()
      const pair = { accessKey, secretKey: generateKeys().secretKey }
      return inWords(
        log,
        async () => withinAccounts(config(), { create: false }, (book) => book.add(name, pair)).secretKey,
      )
    },
    async rotate(accessKey) {
      const { giveSecret, withinAccounts } = await accounts()
      return inWords(log, async () => {
        const { secretKey } = withinAccounts(config(), { create: false }, (book) => book.rotate(accessKey).after)
        // The account has its new secret, which no later answer has.
        const keys = await giveSecret(file(), { accessKey, secretKey }).catch((err) => {
          log.error(
            { err, account: accessKey },
            'the credentials file has the former secret of an account: rotate again',
          )
          return []
        })
        return { secretKey, keys }
      })
    },
    async remove(accessKey) {
      const { keysActingAs, withinAccounts } = await accounts()
      return inWords(log, async () => {
        const keys = await keysActingAs(file(), accessKey)
        withinAccounts(config(), { create: false }, (book) => book.remove(accessKey))
        return keys
      })
    },
  }
}

/** Says by an S3Error what cannot be done. What the machine is the reason of stands in the log alone. */
async function inWords<T>(log: Logger, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (error.cause instanceof RangeError) throw new S3Error('InvalidRequest', { message: error.message })
    log.error({ reason: error.message }, 'key pairs or accounts cannot be read or changed')
    throw new S3Error('InvalidRequest', {
      message: 'This cannot be read or changed now, and nothing has changed: the log of the server has the reason.',
    })
  }
}
