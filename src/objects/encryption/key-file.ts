import { readFile, stat } from 'node:fs/promises'
import { S3Error } from '../../../common/errors/s3-error.js'
import { keepPrivateFile, restrictMode } from '../../../common/files/private-file.js'
import type { Logger } from '../../../common/log.js'
import type { Records } from '../../api/state.js'
import { MAX_RECIPIENTS, newIdentity, recipientOf, requireRecipient } from './age-header.js'

/** Name of the file in the data folder. */
export const KEY_FILE = 'encryption.keys'

/** Age at which the file is looked at again, ms: `dealgate encryption` changes it while the server runs. */
const CHECKED_MS = 1000

/** The id of the key of the server itself, in answers about aws:kms: the name that S3 gives its own. */
export const OWN_KEY = 'aws/s3'

const KEY_ID = /^\w[\w:/.+=,@-]{0,255}$/

/**
 * True for a text that can name a key: it is stored with objects, and an argument of a program, which may take it for a
 * path. No element of it is `.` or `..`.
 */
export function isKeyId(text: string): boolean {
  return KEY_ID.test(text) && !/(^|\/)\.{1,2}(\/|$)/.test(text)
}

export interface NamedKey {
  /** `AGE-SECRET-KEY-...`: the last is the newest. */
  readonly identities: readonly string[]
  /** `age1...`: of the newest identity, and others. Never empty. */
  readonly recipients: readonly string[]
}

/** What a text of keys says. */
export interface KeyText {
  /** `AGE-SECRET-KEY-...`, in the order of the text, with and without a name. */
  readonly identities: readonly string[]
  /** The last identity without a name. */
  readonly newest: string | undefined
  /** `age1...`, without a name. */
  readonly recipients: readonly string[]
  readonly named: ReadonlyMap<string, NamedKey>
}

/** The keys of a server, as its file and its options name them. */
interface Keys extends KeyText {
  /** `age1...`: who can open what is encrypted from now on with the key of the server. */
  readonly recipients: readonly string[]
  /** The recipients who can open what is encrypted with a named key, too. */
  readonly shared: readonly string[]
}

const IDENTITY = /^AGE-SECRET-KEY-/
const RECIPIENT = /^age1/
/** A file with a recipient outside of comments is no file of identities for the program age. */
const COMMENTED = /^#\s*recipient\s*:\s*(age1\S+)$/i
const NAME = /^#\s*name\s*:\s*(.*)$/i

/**
 * Reads the text of a file, which `age -i` reads, too: lines with identities, recipients, and comments. A comment
 * `# name: archive` names the next key, and one `# recipient: age1...` is as the recipient itself. Throws TypeError,
 * which names the line and never its text.
 */
export async function parseKeys(text: string): Promise<KeyText> {
  const identities: string[] = []
  const recipients: string[] = []
  const named = new Map<string, { identities: string[]; recipients: string[] }>()
  let newest: string | undefined
  let name: string | undefined
  for (const [i, whole] of text.split('\n').entries()) {
    const line = COMMENTED.exec(whole.trim())?.[1] ?? whole.trim()
    name = NAME.exec(line)?.[1] ?? name
    if (name !== undefined && (!isKeyId(name) || name === OWN_KEY))
      throw new TypeError(`line ${i + 1} has a name that no key can have: letters, digits and :/.+=,@_- are allowed`)
    if (line === '' || line.startsWith('#')) continue
    const own = name === undefined ? undefined : (named.get(name) ?? { identities: [], recipients: [] })
    if (own && name !== undefined) named.set(name, own)
    name = undefined
    try {
      if (IDENTITY.test(line)) {
        await recipientOf(line)
        identities.push(line)
        if (own) own.identities.push(line)
        else newest = line
      } else if (RECIPIENT.test(line)) (own?.recipients ?? recipients).push(await requireRecipient(line))
      else throw new TypeError('neither')
    } catch {
      throw new TypeError(`line ${i + 1} is no key of age: neither AGE-SECRET-KEY-... nor age1...`)
    }
  }
  // A name without a key would become that of the key that is added next.
  if (name !== undefined) throw new TypeError('the last line with a name has no key below it')
  const keys = new Map<string, NamedKey>()
  for (const [key, own] of named)
    keys.set(key, { ...own, recipients: await withNewest(own.identities.at(-1), own.recipients) })
  return { identities, newest, recipients, named: keys }
}

/** The recipient of an identity, if there is one, and others. */
export async function withNewest(newest: string | undefined, others: readonly string[]): Promise<readonly string[]> {
  return [...new Set([...(newest === undefined ? [] : [await recipientOf(newest)]), ...others])]
}

/** The lines that `age-keygen` writes for an identity, and its name. */
export async function linesOf(identity: string, name?: string, now = new Date()): Promise<string> {
  const lines = [`# created: ${now.toISOString()}`, `# public key: ${await recipientOf(identity)}`, identity]
  return `${[...(name === undefined ? [] : [`# name: ${name}`]), ...lines].join('\n')}\n`
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
  /** Records by which a file that is lost is not taken for one that was never made. */
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
    if (make && this.#known?.version === ABSENT) {
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
    if (keys.recipients.length === 0) throw new S3Error('InvalidRequest', { message: NO_OWN_KEY })
    if (make) await this.#record(keys)
    return keys
  }

  /** Durable before an object needs the key. */
  async #record({ newest }: Keys): Promise<void> {
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
    const text = file === undefined ? '' : await readFile(file, 'utf8')
    const { identities, newest, recipients, named } = await parseKeys(text)
    // What is encrypted for the recipients of the options alone is lost to this server.
    if (file !== undefined && newest === undefined && recipients.length === 0 && named.size === 0)
      throw new TypeError('the file has no key: neither AGE-SECRET-KEY-... nor age1...')
    const shared = [...new Set([...recipients, ...more])]
    const own = newest ?? recipients[0]
    const all = own === undefined ? [] : await withNewest(newest, shared)
    // A file that this server makes has one of its own.
    const unnamed = file === undefined && this.#options.make ? shared.length + 1 : all.length
    const most = Math.max(unnamed, ...[...named.values()].map((key) => key.recipients.length + shared.length))
    if (most > MAX_RECIPIENTS)
      throw new TypeError(`there are ${most} recipients, with those of the options: at most ${MAX_RECIPIENTS}`)
    return { identities, newest, recipients: all, shared, named }
  }
}

const NO_KEYS =
  'This server has no keys to encrypt with: servers that share a state need the same file of keys (--encryption-keys).'

const NO_OWN_KEY =
  'The keys of this server have names: encrypt with aws:kms and the name of one, or ask the operator for a key without a name.'

function lostKeys(recipient: string): string {
  return `The file of keys with ${recipient} is missing, and no new one is made: restore it. If it is lost, make a new one with: dealgate encryption rotate.`
}

function unlessAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
