import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { writePrivateFile } from '../../private-file.js'
import { GatewayError } from '../errors.js'

export interface KeyPair {
  readonly accessKey: string
  readonly secretKey: string
}

const stored = z.object({
  accessKey: z.string(),
  secretKey: z.string(),
  /** Digest of the pair in the configuration when this one was written. */
  configured: z.string().nullable(),
})

/** Bounds of public gateways (MinIO pkg/auth/credentials.go), and what fits into a credential scope. */
const MIN_ACCESS_KEY = 3
const MIN_SECRET_KEY = 8
const KEY = /^[\x21-\x2e\x30-\x7e]{1,128}$/
const SECRET = /^[\x21-\x7e]{1,128}$/

/**
 * The owner's key pair: the configured one, else one made at the first start; after web.SetAuth the one set there, until another is configured.
 * Kept in a file only this user may read.
 */
export class Account {
  readonly #file: string
  readonly #configured: string | null
  #pair: KeyPair
  #tokenKey: Buffer

  private constructor(file: string, configured: string | null, pair: KeyPair) {
    this.#file = file
    this.#configured = configured
    this.#pair = pair
    this.#tokenKey = deriveTokenKey(pair)
  }

  static open(folder: string, configured: KeyPair | undefined): Account {
    const file = join(folder, 'account.json')
    if (configured !== undefined) checkConfigured(configured)
    const digest = configured === undefined ? null : digestOf(configured).toString('hex')
    const kept = read(file)
    if (kept !== undefined && (digest === null || digest === kept.configured)) {
      return new Account(file, kept.configured, { accessKey: kept.accessKey, secretKey: kept.secretKey })
    }
    const account = new Account(file, digest, configured ?? newPair())
    account.#save(account.#pair)
    return account
  }

  get pair(): KeyPair {
    return this.#pair
  }

  /** Signs web tokens; 64 bytes. Another one after the secret has changed, so older tokens die. */
  get tokenKey(): Buffer {
    return this.#tokenKey
  }

  /** Throws GatewayError when these are not the owner's keys. */
  check({ accessKey, secretKey }: KeyPair): void {
    if (accessKey.length < MIN_ACCESS_KEY) throw new GatewayError('ShortAccessKey')
    if (secretKey.length < MIN_SECRET_KEY) throw new GatewayError('ShortSecretKey')
    if (!sameText(accessKey, this.#pair.accessKey)) throw new GatewayError('UnknownAccessKey')
    if (!sameText(secretKey, this.#pair.secretKey)) throw new GatewayError('Authentication')
  }

  /** Puts `next` in the place of `current`; durable on return. Throws GatewayError when `current` is not right or `next` will not do. */
  rotate(current: KeyPair, next: KeyPair): void {
    const accessRight = sameText(current.accessKey, this.#pair.accessKey)
    const secretRight = sameText(current.secretKey, this.#pair.secretKey)
    if (!accessRight || !secretRight) throw new GatewayError('WrongCurrentKeys')
    checkPair(next)
    this.#save(next)
    this.#pair = next
    this.#tokenKey = deriveTokenKey(next)
  }

  #save(pair: KeyPair): void {
    writePrivateFile(this.#file, JSON.stringify({ ...pair, configured: this.#configured }))
  }
}

function read(file: string): z.infer<typeof stored> | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    return stored.parse(JSON.parse(text))
  } catch {
    // The reason would quote the text, and with it the secret.
    throw new Error(`${file} is not an account file. Restore it, or remove it to have a new key pair made.`)
  }
}

function checkPair({ accessKey, secretKey }: KeyPair): void {
  if (accessKey.length < MIN_ACCESS_KEY) throw new GatewayError('ShortAccessKey')
  if (secretKey.length < MIN_SECRET_KEY) throw new GatewayError('ShortSecretKey')
  if (!KEY.test(accessKey) || !SECRET.test(secretKey)) throw new GatewayError('InvalidArguments')
}

function checkConfigured(pair: KeyPair): void {
  try {
    checkPair(pair)
  } catch {
    throw new RangeError(
      "The gateway's access key must have 3 to 128 printable ASCII characters without slash, its secret key 8 to 128, both without spaces.",
    )
  }
}

function newPair(): KeyPair {
  return { accessKey: randomBytes(10).toString('hex'), secretKey: randomBytes(30).toString('base64url') }
}

function digestOf(pair: KeyPair): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([pair.accessKey, pair.secretKey]))
    .digest()
}

function deriveTokenKey(pair: KeyPair): Buffer {
  return createHmac('sha512', pair.secretKey).update(`gateway web token ${pair.accessKey}`).digest()
}

/** In a time that does not depend on where they differ. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
