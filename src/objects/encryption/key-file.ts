import { readFile, stat } from 'node:fs/promises'
import type { Records } from '../../api/state.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { keepPrivateFile, restrictMode } from '../../common/files/private-file.js'
import type { Logger } from '../../common/log.js'
import { MAX_RECIPIENTS, newIdentity, recipientOf, requireRecipient } from './age-header.js'

/** Name of the file in the data folder. */
export const KEY_FILE = 'encryption.keys'

/** Age at which the file is looked at again, ms: `dealgate encryption keys` changes it while the server runs. */
const CHECKED_MS = 1000

/** The keys of a server, as its file and its options name them. */
export interface Keys {
  /** `AGE-SECRET-KEY-...`, in the order of the file: the last is the newest. */
  readonly identities: readonly string[]
  /** `age1...`: who can open what is encrypted from now on. Never empty. */
  readonly recipients: readonly string[]
}

const IDENTITY = /^AGE-SECRET-KEY-/
const RECIPIENT = /^age1/

/**
 * Reads the text of a file, which `age -i` reads, too: lines with identities, recipients, and comments. Throws
 * TypeError, which names the line and never its text.
 */
export async function parseKeys(text: string): Promise<Keys> {
  const identities: string[] = []
  const recipients: string[] = []
  for (const [i, whole] of text.split('\n').entries()) {
    const line = whole.trim()
    if (line === '' || line.startsWith('#')) continue
    try {
      if (IDENTITY.test(line)) {
        await recipientOf(line)
        identities.push(line)
      } else if (RECIPIENT.test(line)) recipients.push(await requireRecipient(line))
      else throw new TypeError('neither')
    } catch {
      throw new TypeError(`line ${i + 1} is no key of age: neither AGE-SECRET-KEY-... nor age1...`)
    }
  }
  return { identities, recipients }
}

/** The lines that `age-keygen` writes for an identity. */
export async function linesOf(identity: string, now = new Date()): Promise<string> {
  return `# created: ${now.toISOString()}\n# public key: ${await recipientOf(identity)}\n${identity}\n`
}

/** Creates the file with a new identity unless it exists. It has its whole content from the start, durably. */
export async function createKeyFile(file: string): Promise<void> {
  keepPrivateFile(file, await linesOf(await newIdentity()))
}

/** The version of a file that is not there. */
const ABSENT = ''

/** Key of the one record. */
const NEWEST = 'newest'

/** What the state knows of the file that this server makes. */
export interface NewestKey {
  /** `age1...` of the newest identity. */
  readonly recipient: string
}

interface KeyFileOptions {
  /** The file; undefined where the server has no place for one of its own. */
  readonly file: string | undefined
  /** Makes the file at the first write. Without it, the file must be there. */
  readonly make: boolean
  /** Recipients of the options, who can open all that is encrypted. */
  readonly recipients: readonly string[]
  /** By them, a file that is lost is not taken for one that was never made. */
  readonly records: Pick<Records<NewestKey>, 'get' | 'set'>
  readonly log: Logger
}

/** The file of keys, read again when it has changed. */
export class KeyFile {
  readonly #options: KeyFileOptions
  #known: { readonly version: string; readonly keys: Keys } | undefined
  #checked = 0
  /** The recipient that the record has. */
  #recorded: string | undefined

  constructor(options: KeyFileOptions) {
    this.#options = options
  }

  /** The keys for a new object. Throws S3Error where there is none. */
  async toWrite(): Promise<Pick<Keys, 'recipients'>> {
    const { make, file, records, log } = this.#options
    // Without a file, the recipients of the options alone could open the object, and this server could not.
    if (file === undefined) throw new S3Error('InvalidRequest', { message: NO_KEYS })
    let keys = await this.toRead()
    if (!make) return keys
    if (this.#known?.version === ABSENT) {
      const lost = await records.get(NEWEST)
      // Another process may have made the file before it made the record.
      keys = await this.toRead(true)
      if (this.#known.version === ABSENT) {
        if (lost) throw new S3Error('ServiceUnavailable', { message: lostKeys(lost.recipient) })
        await createKeyFile(file)
        log.warn({ file }, 'made the keys of encrypted objects: keep a copy, without which they are lost')
        keys = await this.toRead(true)
      }
    }
    await this.#record(keys)
    return keys
  }

  /** Durable before an object needs the key. */
  async #record({ identities }: Keys): Promise<void> {
    const newest = identities.at(-1)
    const recipient = newest === undefined ? undefined : await recipientOf(newest)
    if (recipient === undefined || recipient === this.#recorded) return
    await this.#options.records.set(NEWEST, { recipient })
    this.#recorded = recipient
  }

  /** Reads the keys as a server starts. Throws TypeError for a file that is missing or is no file of keys. */
  async check(): Promise<void> {
    const keys = await this.toRead(true).catch(({ cause }: Error): never => {
      const { file } = this.#options
      throw new TypeError(
        `The keys of encrypted objects${file === undefined ? '' : ` in ${file}`} cannot be read: ${(cause as Error).message}`,
        {
          cause,
        },
      )
    })
    // The first write does it, if the state cannot be used yet.
    if (this.#options.make) await this.#record(keys).catch(() => undefined)
  }

  /**
   * All keys; none if there is no file. Throws S3Error for a file that cannot be read.
   * @param again also if the file was looked at a moment ago
   */
  async toRead(again = false): Promise<Keys> {
    if (this.#known && !again && Date.now() - this.#checked < CHECKED_MS) return this.#known.keys
    const { file, make, recipients } = this.#options
    try {
      const found = file === undefined ? undefined : await stat(file).catch(unlessAbsent)
      const version = found ? `${found.ino} ${found.size} ${found.mtimeMs}` : ABSENT
      // A file that has gone is not replaced by a new one: objects need its keys.
      const expected = file !== undefined && (!make || (this.#known?.version ?? ABSENT) !== ABSENT)
      if (!found && expected) throw new Error('there is no such file')
      if (this.#known?.version !== version)
        this.#known = { version, keys: await this.#read(found ? file : undefined, recipients) }
      this.#checked = Date.now()
      return this.#known.keys
    } catch (cause) {
      throw new S3Error('ServiceUnavailable', {
        message: 'The keys of the encrypted objects cannot be read. Try again, or ask the operator.',
        cause,
      })
    }
  }

  async #read(file: string | undefined, more: readonly string[]): Promise<Keys> {
    if (file !== undefined) restrictMode(file)
    const { identities, recipients } = await parseKeys(file === undefined ? '' : await readFile(file, 'utf8'))
    const newest = identities.at(-1)
    // What is encrypted for the recipients of the options alone is lost to this server.
    if (file !== undefined && newest === undefined && recipients.length === 0)
      throw new TypeError('the file has no key: neither AGE-SECRET-KEY-... nor age1...')
    const own = newest === undefined ? [] : [await recipientOf(newest)]
    const all = [...new Set([...own, ...recipients, ...more])]
    // A file that this server makes has one of its own.
    const count = all.length + (file === undefined && this.#options.make ? 1 : 0)
    if (count > MAX_RECIPIENTS)
      throw new TypeError(`there are ${count} recipients, with those of the options: at most ${MAX_RECIPIENTS}`)
    return { identities, recipients: all }
  }
}

const NO_KEYS =
  'This server has no keys to encrypt with: servers that share a state need the same file of keys (--encryption-keys).'

function lostKeys(recipient: string): string {
  return `The file of keys with ${recipient} is missing, and no new one is made: restore it. If it is lost, make a new one with: dealgate encryption rotate.`
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
