import { createCipheriv, randomBytes, scryptSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { addressOfKey } from '../../../services/payment/addresses.js'

/** The least that a keystore may choose: `dealgate wallet create` takes half a second of CPU time. */
const COST = { n: 2, r: 1, p: 1 }

/** Writes a keystore of version 3 that is cheap to open, in place of another perhaps. */
export function writeKeystore(file: string, password: string, secretKey: Uint8Array): void {
  const salt = randomBytes(32)
  const iv = randomBytes(16)
  const derived = scryptSync(password, salt, 32, { N: COST.n, r: COST.r, p: COST.p })
  const cipher = createCipheriv('aes-128-ctr', derived.subarray(0, 16), iv)
  const ciphertext = Buffer.concat([cipher.update(secretKey), cipher.final()])
  const mac = keccak_256(Buffer.concat([derived.subarray(16), ciphertext]))
  const kdfparams = { dklen: 32, ...COST, salt: salt.toString('hex') }
  const crypto = {
    cipher: 'aes-128-ctr',
    cipherparams: { iv: iv.toString('hex') },
    ciphertext: ciphertext.toString('hex'),
    kdf: 'scrypt',
    kdfparams,
    mac: Buffer.from(mac).toString('hex'),
  }
  const address = addressOfKey(secp256k1.getPublicKey(secretKey, false)).slice(2)
  writeFileSync(file, JSON.stringify({ version: 3, address, crypto }), { mode: 0o600 })
}
