import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { readIfExists, writePrivateFile } from '../../common/files/private-file.js'
import { newIdentity, recipientOf } from '../../src/objects/encryption/age-header.js'
import { CUSTOMER_KEY_BYTES, identityOf } from '../../src/objects/encryption/customer-key.js'
import {
  createKeyFile,
  isKeyId,
  KEY_FILE,
  type KeyText,
  linesOf,
  OWN_KEY,
  parseKeys,
} from '../../src/objects/encryption/key-file.js'
import { Failure, print } from '../command.js'
import type { Config } from '../config/config.js'
import { reserve } from '../keys/credentials-file.js'
import type { Changed } from '../running.js'

type KeyFileConfig = Pick<Config, 'data' | 'encryptionKeys'>

/** The file of keys of a server with these options. */
export function keyFileOf({ data, encryptionKeys }: KeyFileConfig): string {
  return encryptionKeys ?? join(data, KEY_FILE)
}

/** The keys of a file. Throws Failure, which has no text of the file. */
export async function readKeys(file: string): Promise<KeyText & { readonly text: string }> {
  const text = readIfExists(file)
  if (text === undefined)
    throw new Failure(`There is no ${file}: the server makes it when it encrypts the first object.`)
  return { text, ...(await parsed(file, text)) }
}

async function parsed(file: string, text: string): Promise<KeyText> {
  try {
    return await parseKeys(text)
  } catch (cause) {
    throw new Failure(`${file} is not a file of keys: ${(cause as Error).message}`)
  }
}

/** `dealgate encryption list` */
export async function listKeys(config: Config): Promise<void> {
  const file = keyFileOf(config)
  const { identities, recipients, newest, named: keys } = await readKeys(file)
  const named = new Map<string, string>()
  const encrypt = new Set([newest === undefined ? '' : await recipientOf(newest)])
  for (const [name, key] of keys) {
    for (const recipient of key.recipients) encrypt.add(recipient)
    for (const recipient of [...key.recipients, ...(await Promise.all(key.identities.map(recipientOf)))])
      named.set(recipient, name)
  }
  const own = await Promise.all(identities.map(recipientOf))
  const others = [...named.keys(), ...recipients, ...config.encryptionRecipient].filter((each) => !own.includes(each))
  const rows = [
    ...own.map((recipient) => ({ recipient, use: encrypt.has(recipient) ? 'encrypts and decrypts' : 'decrypts' })),
    ...others.map((recipient) => ({ recipient, use: 'encrypts' })),
  ].map((row) => ({ ...row, ...(named.has(row.recipient) && { name: named.get(row.recipient) }) }))
  print(
    config,
    { file, keys: rows },
    rows.map(({ recipient, use, name }) => `${recipient}  ${use}${name === undefined ? '' : `  ${name}`}\n`).join(''),
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
export async function rotateKeys(config: Config, { name }: { readonly name?: string }): Promise<Changed> {
  const file = keyFileOf(config)
  if (name !== undefined && (!isKeyId(name) || name === OWN_KEY))
    throw new Failure(`${name} cannot be the name of a key: letters, digits and :/.+=,@_- are allowed.`)
  const recipient = await underLock(file, async () => {
    // A file has a key of the server, too, which encrypts what asks for no name.
    const isNew = readIfExists(file) === undefined
    if (isNew) await createKeyFile(file)
    const { text } = await readKeys(file)
    if (!isNew || name !== undefined)
      writePrivateFile(file, `${withEnd(text)}${await linesOf(await newIdentity(), name)}`)
    return recipientOf((await readKeys(file)).identities.at(-1) ?? '')
  })
  print(
    config,
    { file, recipient },
    `${recipient}\n\nKept in ${file}: a dealgate that runs with it uses the key within a second. Objects that are stored\nalready need the keys before it. Keep a copy of the file: without it, the objects are lost.\n`,
  )
  return { resource: recipient }
}

/** `dealgate encryption add <file>` */
export async function addKeys(config: Config, from: string): Promise<Changed> {
  const file = keyFileOf(config)
  const given = from === '-' ? (await buffer(process.stdin)).toString() : await readFile(from, 'utf8').catch(unreadable)
  const { identities, recipients, named } = await parsed(from, given)
  if (identities.length === 0) throw new Failure(`${from} has no identity: a line AGE-SECRET-KEY-...`)
  const more = await underLock(file, async () => {
    if (readIfExists(file) === undefined) await createKeyFile(file)
    const { text, identities: known } = await readKeys(file)
    const unknown = identities.filter((identity) => !known.includes(identity))
    const nameOf = (identity: string) => [...named].find(([, key]) => key.identities.includes(identity))?.[0]
    const lines = await Promise.all(unknown.map((identity) => linesOf(identity, nameOf(identity))))
    // The last one encrypts, and stays so.
    if (unknown.length > 0) writePrivateFile(file, `${lines.join('')}${text}`)
    return unknown
  })
  const added = await Promise.all(more.map(recipientOf))
  print(
    config,
    { file, added },
    `Added ${added.length} of ${identities.length} keys to ${file}.${recipients.length > 0 ? ' Recipients are left out: --encryption-recipient names them.' : ''}\n`,
  )
  return { resource: added.join(' ') }
}

/** `dealgate encryption export` */
export async function exportKeys(config: Config): Promise<Changed> {
  const file = keyFileOf(config)
  // The text has the form that `age -i` reads.
  process.stdout.write((await readKeys(file)).text.replace(/^\s*(?=age1)/gm, '# recipient: '))
  return { resource: file }
}

/** `dealgate encryption identity <key>` */
export async function printIdentity(config: Config, given: string): Promise<void> {
  const text = (given === '-' ? (await buffer(process.stdin)).toString() : given).trim()
  const key = Buffer.from(text, 'base64')
  if (key.length !== CUSTOMER_KEY_BYTES || key.toString('base64') !== text)
    throw new Failure(`The key is not ${CUSTOMER_KEY_BYTES} bytes in base64.`)
  const identity = identityOf({ key })
  print(config, { identity }, `${identity}\n`)
}

/** `dealgate encryption recipients` */
export async function listRecipients(config: Config): Promise<void> {
  const { newest, recipients } = await readKeys(keyFileOf(config))
  const all = new Set([...(newest ? [await recipientOf(newest)] : []), ...recipients, ...config.encryptionRecipient])
  print(config, [...all], `${[...all].join('\n')}\n`)
}

function withEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

function unreadable(cause: Error): never {
  throw new Failure(`Cannot read the keys: ${cause.message}`, { cause })
}
