import { createCipheriv, createDecipheriv, randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { scryptAsync } from '@noble/hashes/scrypt.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { z } from 'zod'
import { createPrivateFile } from '../common/files/private-file.js'
import { addressOfKey } from '../services/payment/addresses.js'
import { Failure } from './command.js'

/** Cost of scrypt: 128 MiB, as other wallets take it. */
const N = 131_072
const R = 8
const P = 1
const DERIVED_BYTES = 32
/** Most memory that a file may demand, bytes. */
const MAX_MEMORY = 512 * 2 ** 20

const hex = z.string().regex(/^(?:[0-9a-f]{2})+$/i)

/** https://ethereum.org/developers/docs/data-structures-and-encoding/web3-secret-storage */
const keystore = z.object({
  version: z.literal(3),
  crypto: z.object({
    cipher: z.literal('aes-128-ctr'),
    cipherparams: z.object({ iv: hex }),
    ciphertext: hex,
    kdf: z.literal('scrypt'),
    kdfparams: z.object({
      dklen: z.literal(DERIVED_BYTES),
      n: z.int().positive(),
      r: z.int().positive(),
      p: z.int().positive().max(16),
      salt: hex,
    }),
    mac: hex,
  }),
})

export interface WalletKey {
  /** In lower case. */
  readonly address: string
  readonly secretKey: Uint8Array
}

/**
 * Makes a wallet in a new keystore file of version 3, which only this user may read and only the password opens. Throws
 * Failure when the file exists.
 */
export async function createKeystore(file: string, password: string): Promise<WalletKey> {
  const secretKey = secp256k1.utils.randomSecretKey()
  const salt = randomBytes(32)
  const iv = randomBytes(16)
  const derived = await derive(password, { n: N, r: R, p: P, salt })
  const cipher = createCipheriv('aes-128-ctr', derived.subarray(0, 16), iv)
  const ciphertext = Buffer.concat([cipher.update(secretKey), cipher.final()])
  const wallet = walletOf(secretKey)
  const document = {
    version: 3,
    id: randomUUID(),
    address: wallet.address.slice(2),
    crypto: {
      cipher: 'aes-128-ctr',
      cipherparams: { iv: iv.toString('hex') },
      ciphertext: ciphertext.toString('hex'),
      kdf: 'scrypt',
      kdfparams: { dklen: DERIVED_BYTES, n: N, r: R, p: P, salt: salt.toString('hex') },
      mac: macOf(derived, ciphertext).toString('hex'),
    },
  }
  await createPrivateFile(file, `${JSON.stringify(document)}\n`).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? new Failure(`There is a file ${file} already. Its wallet is kept.`) : error
  })
  return wallet
}

/** Throws Failure when the file is no keystore of version 3 with scrypt, or the password is wrong. */
export async function openKeystore(file: string, password: string): Promise<WalletKey> {
  const { ciphertext, cipherparams, kdfparams, mac } = await read(file)
  const sealed = Buffer.from(ciphertext, 'hex')
  const derived = await derive(password, { ...kdfparams, salt: Buffer.from(kdfparams.salt, 'hex') }).catch(() => {
    throw notKeystore(file)
  })
  const expected = Buffer.from(mac, 'hex')
  const actual = macOf(derived, sealed)
  if (expected.length !== actual.length || !timingSafeEqual(expected, actual)) {
    throw new Failure(`The password does not open ${file}.`)
  }
  const decipher = createDecipheriv('aes-128-ctr', derived.subarray(0, 16), Buffer.from(cipherparams.iv, 'hex'))
  const secretKey = Buffer.concat([decipher.update(sealed), decipher.final()])
  if (!secp256k1.utils.isValidSecretKey(secretKey)) throw notKeystore(file)
  return walletOf(secretKey)
}

async function read(file: string): Promise<z.infer<typeof keystore>['crypto']> {
  const text = await readKeystore(file)
  try {
    return keystore.parse(JSON.parse(text)).crypto
  } catch {
    throw notKeystore(file)
  }
}

/** The text of the file, of any content. Throws Failure when there is none. */
export function readKeystore(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Failure(`There is no wallet ${file}. Make one: dealgate wallet create`) : error
  })
}

function notKeystore(file: string): Failure {
  return new Failure(`${file} is no keystore of version 3 with scrypt.`)
}

function walletOf(secretKey: Uint8Array): WalletKey {
  return { address: addressOfKey(secp256k1.getPublicKey(secretKey, false)), secretKey }
}

function macOf(derived: Uint8Array, ciphertext: Uint8Array): Buffer {
  return Buffer.from(keccak_256(Buffer.concat([derived.subarray(16, 32), ciphertext])))
}

interface Cost {
  readonly n: number
  readonly r: number
  readonly p: number
  readonly salt: Uint8Array
}

const byOpenSsl = promisify<string, Uint8Array, number, object, Uint8Array>(scrypt)

/** OpenSSL takes a quarter of the time, but refuses some costs that other wallets choose. */
async function derive(password: string, { n, r, p, salt }: Cost): Promise<Uint8Array> {
  const text = password.normalize('NFKC')
  const cost = { N: n, r, p, maxmem: MAX_MEMORY }
  try {
    return await byOpenSsl(text, salt, DERIVED_BYTES, cost)
  } catch {
    return scryptAsync(text, salt, { ...cost, dkLen: DERIVED_BYTES })
  }
}
