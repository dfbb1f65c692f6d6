import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { readIfExists, writePrivateFile } from '../../common/files/private-file.js'
import { newIdentity, recipientOf } from '../../objects/encryption/age-header.js'
import { createKeyFile, KEY_FILE, type Keys, linesOf, parseKeys } from '../../objects/encryption/key-file.js'
import { Failure } from '../command.js'
import type { Config } from '../config/config.js'
import { reserve } from '../keys/credentials-file.js'
import type { Changed } from '../running.js'

type Place = Pick<Config, 'data' | 'encryptionKeys'>

/** The file of keys of a server with these options. */
export function keyFileOf({ data, encryptionKeys }: Place): string {
  return encryptionKeys ?? join(data, KEY_FILE)
}

/** The keys of a file. Throws Failure, which has no text of the file. */
export async function readKeys(file: string): Promise<Keys & { readonly text: string }> {
  const text = readIfExists(file)
  if (text === undefined)
    throw new Failure(`There is no ${file}: the server makes it when it encrypts the first object.`)
  return { text, ...(await parsed(file, text)) }
}

async function parsed(file: string, text: string): Promise<Keys> {
  try {
    return await parseKeys(text)
  } catch (cause) {
    throw new Failure(`${file} is not a file of keys: ${(cause as Error).message}`)
  }
}

/** `dealgate encryption list` */
export async function listKeys(config: Config): Promise<void> {
  const file = keyFileOf(config)
  const { identities, recipients } = await readKeys(file)
  const own = await Promise.all(identities.map(recipientOf))
  const rows = [
    ...own.map((recipient, i) => ({ recipient, use: i === own.length - 1 ? 'encrypts and decrypts' : 'decrypts' })),
    ...[...recipients, ...config.encryptionRecipient].map((recipient) => ({ recipient, use: 'encrypts' })),
  ]
  process.stdout.write(
    config.print === 'json'
      ? `${JSON.stringify({ file, keys: rows })}\n`
      : rows.map(({ recipient, use }) => `${recipient}  ${use}\n`).join(''),
  )
}

/** Runs a change of the file under a lock: of two commands at a time, none loses the keys of the other. */
async function underLock<T>(file: string, change: () => Promise<T>): Promise<T> {
  const release = await reserve(`${file}.lock`)
  try {
    return await change()
  } finally {
    release()
  }
}

/** `dealgate encryption rotate` */
export async function rotateKeys(config: Config): Promise<Changed> {
  const file = keyFileOf(config)
  const recipient = await underLock(file, async () => {
    const text = readIfExists(file)
    if (text === undefined) await createKeyFile(file)
    else {
      await parsed(file, text)
      writePrivateFile(file, `${withEnd(text)}${await linesOf(await newIdentity())}`)
    }
    return recipientOf((await readKeys(file)).identities.at(-1) ?? '')
  })
  process.stdout.write(
    config.print === 'json'
      ? `${JSON.stringify({ file, recipient })}\n`
      : `${recipient}\n\nKept in ${file}: a dealgate that runs with it uses the key within a second. Objects that are stored\nalready need the keys before it. Keep a copy of the file: without it, the objects are lost.\n`,
  )
  return { resource: recipient }
}

/** `dealgate encryption add <file>` */
export async function addKeys(config: Config, from: string): Promise<Changed> {
  const file = keyFileOf(config)
  const given = from === '-' ? (await buffer(process.stdin)).toString() : await readFile(from, 'utf8').catch(unreadable)
  const { identities } = await parsed(from, given)
  if (identities.length === 0) throw new Failure(`${from} has no identity: a line AGE-SECRET-KEY-...`)
  const more = await underLock(file, async () => {
    if (readIfExists(file) === undefined) await createKeyFile(file)
    const { text, identities: known } = await readKeys(file)
    const unknown = identities.filter((identity) => !known.includes(identity))
    const lines = await Promise.all(unknown.map((identity) => linesOf(identity)))
    // The last one encrypts, and stays so.
    if (unknown.length > 0) writePrivateFile(file, `${lines.join('')}${text}`)
    return unknown
  })
  const added = await Promise.all(more.map(recipientOf))
  process.stdout.write(
    config.print === 'json'
      ? `${JSON.stringify({ file, added })}\n`
      : `Added ${added.length} of ${identities.length} keys to ${file}.\n`,
  )
  return { resource: added.join(' ') }
}

/** `dealgate encryption export` */
export async function exportKeys(config: Config): Promise<Changed> {
  const file = keyFileOf(config)
  process.stdout.write((await readKeys(file)).text)
  return { resource: file }
}

/** `dealgate encryption recipients` */
export async function listRecipients(config: Config): Promise<void> {
  const { identities, recipients } = await readKeys(keyFileOf(config))
  const newest = identities.at(-1)
  const all = new Set([...(newest ? [await recipientOf(newest)] : []), ...recipients, ...config.encryptionRecipient])
  process.stdout.write(config.print === 'json' ? `${JSON.stringify([...all])}\n` : `${[...all].join('\n')}\n`)
}

function withEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

function unreadable(cause: Error): never {
  throw new Failure(`Cannot read the keys: ${cause.message}`, { cause })
}
