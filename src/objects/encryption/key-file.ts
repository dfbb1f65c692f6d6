import { randomUUID } from 'node:crypto'
import { link, readFile, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { S3Error } from '../../common/errors/s3-error.js'
import { createPrivateFile, restrictMode, syncFolder } from '../../common/files/private-file.js'
import type { Logger } from '../../common/log.js'
import { newIdentity, recipientOf, requireRecipient } from './age-header.js'

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
  const draft = `${file}.${randomUUID()}`
  try {
    await createPrivateFile(draft, await linesOf(await newIdentity()))
    await link(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(dirname(file))
}

/** The version of a file that is not there. */
const ABSENT = ''

interface KeyFileOptions {
  /** The file; undefined where the server has no place for one of its own. */
  readonly file: string | undefined
  /** Makes the file at the first write. Without it, the file must be there. */
  readonly make: boolean
  /** Recipients of the options, who can open all that is encrypted. */
  readonly recipients: readonly string[]
  readonly log: Logger
}

/** The file of keys, read again when it has changed. */
export class KeyFile {
  readonly #options: KeyFileOptions
  #known: { readonly version: string; readonly keys: Keys } | undefined
  #checked = 0

  constructor(options: KeyFileOptions) {
    this.#options = options
  }

  /** The keys for a new object. Throws S3Error where there is none. */
  async toWrite(): Promise<Pick<Keys, 'recipients'>> {
    const { make, file } = this.#options
    let { recipients } = await this.toRead()
    if (make && file !== undefined && this.#known?.version === ABSENT) {
      await createKeyFile(file)
      this.#options.log.warn({ file }, 'made the keys of encrypted objects: keep a copy, without which they are lost')
      recipients = (await this.toRead(true)).recipients
    }
    if (recipients.length === 0) throw new S3Error('InvalidRequest', { message: NO_KEYS })
    return { recipients }
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
      if (!found && expected) throw new Error(`there is no file of keys ${file}`)
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
    const own = newest === undefined ? [] : [await recipientOf(newest)]
    return { identities, recipients: [...new Set([...own, ...recipients, ...more])] }
  }
}

const NO_KEYS =
  'This server has no keys to encrypt with: servers that share a state need the same file of keys (--encryption-keys).'

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
