import type { Credentials, Identity } from '../../../auth/caller.js'
import {
  type CredentialsFile,
  type CredentialsFileOptions,
  openCredentialsFile,
} from '../../../auth/identities/credentials-file.js'
import { CredentialsError } from '../../../auth/identities/credentials-text.js'
import { makeFolders } from '../../../common/files/private-file.js'
import type { Logger } from '../../../common/log.js'
import { openingFailure } from '../../../common/opening-failure.js'
import type { Prepared } from '../../../server/proxy-options.js'
import type { Config } from '../../config/config.js'
import { Failure } from '../../failure.js'
import { credentialsPath } from '../../keys/credentials-file.js'
import { type ObtainedKeys, obtainKeys } from '../../keys/keys.js'

interface Opened {
  readonly owner: Identity
  readonly others: CredentialsFile
}

/** The S3 key pairs of a server: that of its owner, and those of the credentials file. */
export class Identities {
  readonly #log: Logger
  readonly #policyProblem: CredentialsFileOptions['policyProblem']
  #opened: Opened | undefined

  constructor(log: Logger, policyProblem: CredentialsFileOptions['policyProblem']) {
    this.#log = log
    this.#policyProblem = policyProblem
  }

  /** Throws Failure. */
  async open(config: Config): Promise<ObtainedKeys> {
    const keys = await obtainKeys(config)
    this.#opened = await this.#read(config, keys)
    return keys
  }

  readonly find: Credentials = (accessKeyId) => {
    const { owner, others } = this.#opened ?? {}
    return accessKeyId === owner?.accessKeyId ? owner : others?.find(accessKeyId)
  }

  /** Reads the key pairs of another configuration. Throws Failure. */
  async prepare(next: Config): Promise<Prepared> {
    const opened = await this.#read(next, await obtainKeys(next))
    return {
      apply: async () => {
        const former = this.#opened
        this.#opened = opened
        former?.others.close()
      },
      discard: async () => opened.others.close(),
    }
  }

  close(): void {
    this.#opened?.others.close()
  }

  /** A configured file must exist; the default one is optional. */
  async #read(config: Config, { accessKey, secretKey }: ObtainedKeys): Promise<Opened> {
    const file = credentialsPath(config)
    const owner = { accessKeyId: accessKey, secretAccessKey: secretKey }
    try {
      if (config.credentialsFile === undefined) makeFolders(config.data)
      const optional = config.credentialsFile === undefined
      const following = { log: this.#log, policyProblem: this.#policyProblem }
      return { owner, others: openCredentialsFile({ file, optional, owner: accessKey, ...following }) }
    } catch (error) {
      const unusable = openingFailure(file, error)
      if (unusable !== undefined) throw new Failure(`Cannot use the credentials file: ${unusable}`, { cause: error })
      const advice = error instanceof CredentialsError ? ' `dealgate keys add` makes such a file.' : ''
      throw new Failure(`Cannot use the credentials file: ${(error as Error).message}.${advice}`, { cause: error })
    }
  }
}
