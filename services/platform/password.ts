import { randomBytes } from 'node:crypto'

/** Cost of a hash, as OWASP recommends it for argon2id: 19 MiB and two passes, some 12 ms of CPU time. */
const MEMORY_KIB = 19_456
const PASSES = 2

const DIGEST_BYTES = 32
const SALT_BYTES = 16

export async function hashPassword(password: string): Promise<string> {
  const { hash } = await library()
  return hash(password, { memoryCost: MEMORY_KIB, timeCost: PASSES, parallelism: 1, outputLen: DIGEST_BYTES })
}

/** @param hashed result of `hashPassword` */
export async function isPassword(hashed: string, password: string): Promise<boolean> {
  const { verify } = await library()
  return verify(hashed, password)
}

/** A hash that no password has: to check one against it takes as long as against a real one. */
export function impossibleHash(): string {
  const part = (bytes: number): string => randomBytes(bytes).toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$${part(SALT_BYTES)}$${part(DIGEST_BYTES)}`
}

export function newPassword(): string {
  return randomBytes(18).toString('base64url')
}

/** Loaded when the first password is hashed: most starts hash none. */
function library(): Promise<typeof import('@node-rs/argon2')> {
  return import('@node-rs/argon2')
}
