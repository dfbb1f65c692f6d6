import { S3Error } from '../../../common/errors/s3-error.js'
import type { CustomerKey, Encrypted, EncryptionOrder } from '../../api/encryption.js'
import { MAX_RECIPIENTS, openHeader, recipientOf, type Unopened } from './age-header.js'
import { identityOf } from './customer-key.js'
import type { KeyCommand } from './key-command.js'
import { type KeyFile, type NamedKey, OWN_KEY } from './key-file.js'

/** The keys of a server: those of its file, and those of a program. */
export class Keyring {
  readonly #file: KeyFile
  readonly #command: KeyCommand | undefined

  /** @param command holds the named keys that the file does not have */
  constructor(file: KeyFile, command: KeyCommand | undefined) {
    this.#file = file
    this.#command = command
  }

  /** The recipients who can open a new object, `age1...`. Throws S3Error. */
  async recipientsFor(order: EncryptionOrder): Promise<readonly string[]> {
    if (order.algorithm === 'SSE-C') return [await recipientOf(identityOf(order.customer))]
    const { keyId } = order
    if (keyId === undefined || keyId === OWN_KEY) return (await this.#file.toWrite()).recipients
    const named = await this.#named(keyId)
    if (!named) throw notFound(keyId)
    const all = [...new Set([...named.recipients, ...(await this.#file.toRead()).shared])]
    if (all.length <= MAX_RECIPIENTS) return all
    throw new S3Error('ServiceUnavailable', {
      message: `The key ${keyId} and the options of the server have more than ${MAX_RECIPIENTS} recipients.`,
    })
  }

  /**
   * The key of a file. Throws S3Error for a named key that is not there.
   * @param place as of `openHeader`
   */
  async open(
    header: Buffer,
    { keyId }: Encrypted,
    place: string,
    customer: CustomerKey | undefined,
  ): Promise<Buffer | Unopened> {
    if (customer) return openHeader(header, [identityOf(customer)], place)
    const { identities } = await this.#file.toRead()
    let found = await openHeader(header, identities, place)
    if (found !== 'no key') return found
    // Another process may have added one within the last second.
    const again = (await this.#file.toRead(true)).identities
    if (again.length !== identities.length) found = await openHeader(header, again, place)
    if (found !== 'no key' || keyId === undefined || keyId === OWN_KEY) return found
    for (const latest of [false, true]) {
      const named = await this.#named(keyId, latest)
      if (!named) throw notFound(keyId)
      found = await openHeader(header, named.identities, place)
      if (found !== 'no key' || !this.#command) return found
    }
    return found
  }

  /** @param again also if the key was looked for a while ago */
  async #named(keyId: string, again = false): Promise<NamedKey | undefined> {
    return (await this.#file.toRead(again)).named.get(keyId) ?? this.#command?.find(keyId, again)
  }
}

function notFound(keyId: string): S3Error {
  return new S3Error('KMS.NotFoundException', { message: `Key '${keyId}' does not exist` })
}
