import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { S3Error } from '../../common/errors/s3-error.js'
import { makePrivateFolder, writePrivateFile } from '../../common/files/private-file.js'
import type { GatewayAccount, Identity } from '../../src/api/identity.js'
import type { AccountKeys } from '../../src/gateway/account/log-in.js'
import { isSameAccount } from '../../src/gateway/account/session.js'
import { Failure } from '../command.js'
import { changeCredentials, readCredentials } from './credentials-file.js'

const pair = z.object({ accessKey: z.string(), secretKey: z.string() })
const changes = z.array(z.object({ from: pair, to: pair, confirmed: z.boolean() }))

/** A change of the keys of an account. Until it is confirmed, the gateway may have either pair. */
type Change = z.infer<typeof changes>[number]

/** Most unconfirmed changes of one account. */
const MAX_PENDING = 3
/** Most former pairs that are remembered for requests that began with them. */
const MAX_FORMER = 1000

interface KeptKeysOptions {
  readonly data: string
  readonly credentials: string
  /** The account in the options, which only this file can replace. */
  readonly own: GatewayAccount | undefined
  /** True if other servers on the same state log in with the same keys: keys cannot be changed here then. */
  readonly shared: boolean
}

/**
 * Keeps changed keys of gateway accounts in `gateway-keys.json` in the data folder, until the credentials file has
 * them; those that replace the account in the options stay there. Throws Failure for a file with other content.
 */
export class KeptAccountKeys implements AccountKeys {
  readonly #options: KeptKeysOptions
  readonly #file: string
  #changes: readonly Change[]
  /** Confirmed changes that the credentials file has, for requests that began before. */
  #former: readonly Change[] = []
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: KeptKeysOptions) {
    this.#options = options
    this.#file = join(options.data, 'gateway-keys.json')
    this.#changes = read(this.#file)
  }

  latest(account: GatewayAccount): GatewayAccount {
    const change = [...this.#changes, ...this.#former].find(
      ({ from, confirmed }) => confirmed && isSameAccount(from, account),
    )
    return change?.to ?? account
  }

  pending(current: GatewayAccount): readonly GatewayAccount[] {
    return this.#changes.filter(({ from, confirmed }) => !confirmed && isSameAccount(from, current)).map(({ to }) => to)
  }

  prepare(current: GatewayAccount, next: GatewayAccount): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#options.shared) {
        throw new S3Error('NotImplemented', {
          message: 'Several servers share the state of this one and log in with the same keys: change them by hand.',
        })
      }
      if (!isSameAccount(this.latest(next), next)) {
        throw new S3Error('InvalidArgument', { message: 'The account has had these keys before: choose others.' })
      }
      if (this.pending(current).length >= MAX_PENDING) {
        throw new S3Error('OperationAborted', {
          message: `The outcome of ${MAX_PENDING} earlier changes of these keys is unknown: change them at the gateway.`,
        })
      }
      this.#save([...this.#changes, { from: current, to: next, confirmed: false }])
    })
  }

  withdraw(current: GatewayAccount, next: GatewayAccount): Promise<void> {
    return this.#inTurn(async () => this.#save(this.#changes.filter((change) => !isChange(change, current, next))))
  }

  restore(former: GatewayAccount): Promise<void> {
    return this.#inTurn(async () => {
      const left = ({ from }: Change) => !isSameAccount(from, former)
      this.#former = this.#former.filter(left)
      if (!this.#changes.every(left)) this.#save(this.#changes.filter(left))
    })
  }

  confirm(current: GatewayAccount, next: GatewayAccount): Promise<void> {
    return this.#inTurn(async () => {
      this.#save(confirmed(this.#changes, current, next))
      this.#former = confirmed(this.#former, current, next).slice(-MAX_FORMER)
      await this.#store()
    })
  }

  /**
   * Completes what a crash interrupted, and forgets changes that no longer concern this server. Rejects when the
   * credentials file cannot be changed now; the keys are right nevertheless.
   */
  settle(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#changes.length === 0) return
      const users = (await readCredentials(this.#options.credentials)).map(({ account }) => account)
      // The credentials file and the options may still have an earlier pair than the one that a change begins with.
      const isUsed = ({ from }: Change) =>
        [this.#options.own, ...users].some(
          (account) =>
            account !== undefined && (isSameAccount(account, from) || isSameAccount(this.latest(account), from)),
        )
      const used = this.#changes.filter(isUsed)
      if (used.length < this.#changes.length) this.#save(used)
      await this.#store()
    })
  }

  /** Writes confirmed keys into the credentials file, and forgets those that are nowhere else. */
  async #store(): Promise<void> {
    const { credentials, own } = this.#options
    const isOld = ({ account }: Identity) => account !== undefined && !isSameAccount(this.latest(account), account)
    if ((await readCredentials(credentials)).some(isOld)) {
      await changeCredentials(credentials, (all) =>
        all.map((one) => (one.account === undefined ? one : { ...one, account: this.latest(one.account) })),
      )
    }
    const left = this.#changes.filter(
      ({ from, confirmed }) => !confirmed || (own !== undefined && isSameAccount(from, own)),
    )
    if (left.length < this.#changes.length) this.#save(left)
  }

  #save(next: readonly Change[]): void {
    makePrivateFolder(this.#options.data)
    writePrivateFile(this.#file, `${JSON.stringify(next, null, 2)}\n`)
    this.#changes = next
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }
}

/** The changes once `next` is current: former pairs lead to it, and nothing else is pending for them. */
function confirmed(all: readonly Change[], current: GatewayAccount, next: GatewayAccount): Change[] {
  const others = all
    .filter(({ from, confirmed }) => !isSameAccount(from, next) && (confirmed || !isSameAccount(from, current)))
    .map((change) => (isSameAccount(change.to, current) ? { ...change, to: next } : change))
    .filter(({ from }) => !isSameAccount(from, current))
  return [...others, { from: current, to: next, confirmed: true }]
}

function isChange({ from, to }: Change, current: GatewayAccount, next: GatewayAccount): boolean {
  return isSameAccount(from, current) && isSameAccount(to, next)
}

function read(file: string): readonly Change[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw new Failure(`Cannot read the keys of gateway accounts: ${(error as Error).message}`, { cause: error })
  }
  try {
    return changes.parse(JSON.parse(text))
  } catch {
    // The parser's message would quote the text, and with it the secret.
    throw new Failure(
      `${file} does not hold keys of gateway accounts. Restore it; or remove it and configure the current keys.`,
    )
  }
}
