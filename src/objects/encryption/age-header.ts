import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Identity, Stanza } from 'age-encryption'
import { x25519Identity, x25519Recipient } from './x25519.js'

// The header of an age file: one stanza for each recipient, with the key of the file. https://c2sp.org/age, "Header"

/** The first line of every age file. */
export const AGE_MAGIC = 'age-encryption.org/v1\n'

/** Most stanzas of a header that is read: each costs the attempts of all keys. */
const MAX_STANZAS = 20

/** Most recipients of a header that is made: one stanza names the place of the object. */
export const MAX_RECIPIENTS = MAX_STANZAS - 1

/** Longest header that is read: one with 20 recipients of the post-quantum form fits. */
export const MAX_HEADER_BYTES = 64 * 1024

/**
 * The stanza that names, to holders of the file key alone, the object for which a file was made. Programs that do not
 * know it ignore it.
 */
const PLACE = 'dealgate/object'

/** Loaded when it is used: most servers encrypt nothing. */
const library = () => import('age-encryption')

/** A new `AGE-SECRET-KEY-...`. */
export async function newIdentity(): Promise<string> {
  return (await library()).generateX25519Identity()
}

/** The `age1...` of an identity. Throws for a text that is none. */
export async function recipientOf(identity: string): Promise<string> {
  return x25519Identity(identity)?.recipient ?? (await library()).identityToRecipient(identity)
}

/** Throws for a text that is no recipient. */
export async function requireRecipient(recipient: string): Promise<string> {
  ;new (await library()).Encrypter().addRecipient(recipient)
  return recipient
}

/** A header for a new file, and the key in it. */
export interface NewHeader {
  readonly header: Buffer
  /** 16 bytes. */
  readonly fileKey: Buffer
}

/**
 * @param recipients `age1...`
 * @param place the object for which the file is made, as text
 * @param own the key of a file that is there; default a new one
 */
export async function makeHeader(recipients: readonly string[], place: string, own?: Buffer): Promise<NewHeader> {
  const { Encrypter, Stanza } = await library()
  const encrypter = new Encrypter()
  let known: Buffer | undefined
  // The library makes a key for each file. All recipients wrap the one in these bytes.
  encrypter.addRecipient({
    wrapFileKey(fileKey) {
      if (own) fileKey.set(own)
      return []
    },
  })
  for (const recipient of recipients) encrypter.addRecipient(x25519Recipient(recipient, Stanza) ?? recipient)
  encrypter.addRecipient({
    wrapFileKey(fileKey) {
      known = Buffer.from(fileKey)
      return [new Stanza([PLACE, recipientsMark(fileKey, recipients)], placeMac(fileKey, place))]
    },
  })
  const file = await encrypter.encrypt(new Uint8Array(0))
  const end = headerEnd(file)
  if (known === undefined || end === undefined) throw new Error('the library made no header')
  return { header: Buffer.from(file.subarray(0, end)), fileKey: known }
}

/** Why a header does not open. */
export type Unopened = 'malformed' | 'too many stanzas' | 'no key' | 'another place'

/** Keys that are ready for use, as long as their list is in use: those of the server are, and those of clients not. */
const ready = new WeakMap<readonly string[], readonly (Identity | string)[]>()

function readied(identities: readonly string[]): readonly (Identity | string)[] {
  const known = ready.get(identities) ?? identities.map((identity) => x25519Identity(identity) ?? identity)
  ready.set(identities, known)
  return known
}

/**
 * Finds the key of a file. Resolves to the reason where it cannot be had.
 * @param header whole
 * @param identities `AGE-SECRET-KEY-...`
 * @param place as of `makeHeader`; absent for files that others made
 */
export async function openHeader(
  header: Uint8Array,
  identities: readonly string[],
  place?: string,
): Promise<Buffer | Unopened> {
  const { Decrypter } = await library()
  const decrypter = new Decrypter()
  let found: readonly Stanza[] = []
  let tried = 0
  // The first identity sees all stanzas before any key is tried.
  decrypter.addIdentity({
    unwrapFileKey(stanzas: Stanza[]) {
      found = stanzas
      if (stanzas.length > MAX_STANZAS) throw new RangeError('too many stanzas')
      return null
    },
  })
  for (const identity of readied(identities)) decrypter.addIdentity(identity)
  // The last one is asked only if no other has a key.
  decrypter.addIdentity({
    unwrapFileKey() {
      tried++
      return null
    },
  })
  try {
    const fileKey = Buffer.from(await decrypter.decryptHeader(Buffer.from(header)))
    return place === undefined || isFor(found, fileKey, place) ? fileKey : 'another place'
  } catch {
    if (found.length > MAX_STANZAS) return 'too many stanzas'
    return tried > 0 ? 'no key' : 'malformed'
  }
}

/** Whether the header, which the key of its file has opened, was made for these recipients and no others. */
export function isMadeFor(header: Buffer, fileKey: Uint8Array, recipients: readonly string[]): boolean {
  return header.includes(`\n-> ${PLACE} ${recipientsMark(fileKey, recipients)}\n`)
}

/** A mark of the recipients. Only those who have the key of the file can compare it with recipients. */
function recipientsMark(fileKey: Uint8Array, recipients: readonly string[]): string {
  const key = Buffer.from(hkdfSync('sha256', fileKey, '', `${PLACE} recipients`, 32))
  return createHmac('sha256', key)
    .update([...recipients].sort().join('\n'))
    .digest()
    .subarray(0, MARK_BYTES)
    .toString('base64url')
}

const MARK_BYTES = 12

function isFor(stanzas: readonly Stanza[], fileKey: Uint8Array, place: string): boolean {
  const expected = placeMac(fileKey, place)
  return stanzas.some(
    ({ args, body }) => args[0] === PLACE && body.length === expected.length && timingSafeEqual(body, expected),
  )
}

function placeMac(fileKey: Uint8Array, place: string): Buffer {
  const key = Buffer.from(hkdfSync('sha256', fileKey, '', PLACE, 32))
  return createHmac('sha256', key).update(place).digest()
}

/**
 * The length of the header of a file that was made for the place of an object; undefined for other age files. A header
 * that is cut or too long counts, with the bytes that are there: opening it says what is wrong.
 */
export function placedHeader(bytes: Buffer): number | undefined {
  const end = headerEnd(bytes)
  return bytes.subarray(0, end).includes(`\n-> ${PLACE} `) ? (end ?? bytes.length) : undefined
}

/** The length of the header at the beginning of a file; undefined where it does not end within these bytes. */
export function headerEnd(bytes: Uint8Array): number | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, MAX_HEADER_BYTES))
  const mac = text.indexOf('\n--- ')
  const end = mac < 0 ? -1 : text.indexOf('\n', mac + 1)
  return end < 0 ? undefined : end + 1
}
