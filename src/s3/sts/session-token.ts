import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { open, seal } from './sealing.js'

/** What a session token holds. Its members have short names, because clients send the token with every request. */
const terms = {
  /** The secret access key. */
  k: z.string(),
  /** End of the session, ms since 1970. */
  e: z.number(),
  /** Session policy. */
  p: z.custom<Readonly<Record<string, unknown>>>((value) => typeof value === 'object' && value !== null).optional(),
}

const ofPlatform = z.object({
  ...terms,
  /** Keys of the gateway account. */
  a: z.tuple([z.string(), z.string()]),
  /** The token of the platform. */
  j: z.string(),
  /** Name of the session. */
  n: z.string(),
  /** ARN of the role. */
  r: z.string(),
})

const ofKeyPair = z.object({
  ...terms,
  /** Access key id of the key pair. */
  i: z.string(),
  /** Hash of its secret. */
  h: z.string(),
  /** Name of the session of a web identity. */
  n: z.string().optional(),
  /** ARN of the role of a web identity. */
  r: z.string().optional(),
})

const content = z.union([ofPlatform, ofKeyPair])

export type OfPlatform = z.infer<typeof ofPlatform>
export type OfKeyPair = z.infer<typeof ofKeyPair>
export type TokenContent = z.infer<typeof content>

/** The token of a session; it opens only with its access key id. */
export function sealToken(key: Buffer, accessKeyId: string, session: TokenContent): string {
  return seal(key, JSON.stringify(session), accessKeyId)
}

/** Undefined for a token that this server has not made for this access key id. */
export function openToken(key: Buffer, accessKeyId: string, token: string): TokenContent | undefined {
  const text = open(key, token, accessKeyId)
  const read = text === undefined ? undefined : content.safeParse(JSON.parse(text))
  return read?.data
}

const ID = /^DGS[A-Z2-7]{17}$/
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** True for access key ids of temporary credentials. */
export function isSessionId(accessKeyId: string): boolean {
  return ID.test(accessKeyId)
}

/** A random access key id of temporary credentials, 85 bits. */
export function newSessionId(): string {
  return `DGS${[...randomBytes(17)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')}`
}

/** A random secret access key, 240 bits. */
export function newSecret(): string {
  return randomBytes(30).toString('base64')
}
