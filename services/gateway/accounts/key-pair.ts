import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../errors.js'

export interface KeyPair {
  readonly accessKey: string
  readonly secretKey: string
}

/** Bounds of public gateways (MinIO pkg/auth/credentials.go), and those of a credential scope. */
export const MIN_ACCESS_KEY = 3

export const MIN_SECRET_KEY = 8

const KEY = /^[\x21-\x2e\x30-\x7e]{1,128}$/
const SECRET = /^[\x21-\x7e]{1,128}$/

/** Throws GatewayError when an account may not have this pair. */
export function checkPair({ accessKey, secretKey }: KeyPair): void {
  if (accessKey.length < MIN_ACCESS_KEY) throw new GatewayError('ShortAccessKey')
  if (secretKey.length < MIN_SECRET_KEY) throw new GatewayError('ShortSecretKey')
  if (!KEY.test(accessKey) || !SECRET.test(secretKey)) throw new GatewayError('InvalidArguments')
}

/** Like `checkPair`, for a pair that a person has chosen: throws RangeError. */
export function checkChosenPair(pair: KeyPair): void {
  try {
    checkPair(pair)
  } catch {
    throw new RangeError(
      "The gateway's access key must have 3 to 128 printable ASCII characters without slash, its secret key 8 to 128, both without spaces.",
    )
  }
}

export function newPair(): KeyPair {
  return { accessKey: randomBytes(10).toString('hex'), secretKey: newSecret() }
}

/** 240 random bits. */
export function newSecret(): string {
  return randomBytes(30).toString('base64url')
}

/** True when both keys are the same. The time that it takes does not depend on where they differ. */
export function isSamePair(a: KeyPair, b: KeyPair): boolean {
  const accessSame = sameText(a.accessKey, b.accessKey)
  const secretSame = sameText(a.secretKey, b.secretKey)
  return accessSame && secretSame
}

/** Key that signs the web tokens of an account, 64 bytes. It changes with the pair, which invalidates older tokens. */
export function tokenKeyOf({ accessKey, secretKey }: KeyPair): Buffer {
  return createHmac('sha512', secretKey).update(`gateway web token ${accessKey}`).digest()
}

function sameText(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
