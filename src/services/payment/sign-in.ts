import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Database } from '../database.js'
import { DayTokens } from '../day-tokens.js'
import { clientOf } from '../http/server.js'
import { PaymentError } from './errors.js'
import { type Exchange, type Route, readJson } from './http.js'
import { addressOfKey, type KnownWallet, parseAddress, type Wallets } from './wallets.js'

const BEARER = /^Bearer +(\S+) *$/i

/** The signed-in wallet of a request; undefined where none needs to sign in. Throws PaymentError `unauthorized`. */
export async function callerOf(
  { context, request }: Pick<Exchange, 'context' | 'request'>,
  { access }: Pick<Route, 'access'>,
): Promise<KnownWallet | undefined> {
  if (context.variant === 'b' || access === 'public') return undefined
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1]
  const caller = token === undefined ? undefined : await context.tokens.walletOf(token, context.seconds())
  if (caller === undefined) {
    throw new PaymentError('unauthorized', 'sign in and send `Authorization: Bearer` with a valid jwt_token', [
      'WWW-Authenticate',
      'Bearer',
    ])
  }
  return caller
}

/**
 * Address of the wallet that a request is about, in lower case: the one that it names, which in variant A must be the
 * signed-in one and may be left out. Throws PaymentError.
 * @param given `wallet_address` of the request
 */
export function walletAddressOf({ caller }: Pick<Exchange, 'caller'>, given: string | undefined): string {
  if (given === undefined) {
    if (caller === undefined) throw new PaymentError('missing', 'wallet_address is required')
    return caller.address
  }
  const address = readAddress('wallet_address', given)
  if (caller !== undefined && caller.address !== address) {
    throw new PaymentError('forbidden', 'wallet_address is not the wallet that signed in')
  }
  return address
}

/** Throws PaymentError `value`. */
export function readAddress(name: string, text: string): string {
  const address = parseAddress(text)
  if (address === undefined) throw new PaymentError('value', `${name} must be 0x and 40 hexadecimal digits`)
  return address
}

const RETRY_SECONDS = 300

/** POST /user/login_by_wallet_signature: the signature of a nonce for a JWT, valid for a day. */
export async function logInByWalletSignature(exchange: Exchange): Promise<object> {
  const { nonces, wallets, tokens, writer, seconds, networkName, limits } = exchange.context
  const fields = await readJson(exchange)
  const nonce = fields.required('nonce')
  const signature = fields.required('signature')
  const address = readAddress('public_key_address', fields.required('public_key_address'))
  if (fields.required('network') !== networkName) {
    throw new PaymentError('value', `network must be ${networkName}, the network of this service`)
  }
  // The nonce is checked first: it costs less than the signature, and only the service makes valid ones.
  if (!nonces.isValid(nonce, address, seconds())) throw refused('the nonce is not of this wallet, or has expired')
  if (signerOfText(nonce, signature) !== address) throw refused('the signature is not that of the wallet')
  const wallet = await writer.run(() => {
    nonces.forget(seconds())
    if (nonces.used() >= limits.maxUsedNonces) return 'full'
    if (!nonces.use(nonce)) return undefined
    return wallets.signIn(address, seconds(), limits.maxNewWallets) ?? 'full'
  })
  if (wallet === undefined) throw refused('the nonce was used before')
  if (wallet === 'full') throw new PaymentError('busy', 'too many wallets sign in', ['Retry-After', RETRY_SECONDS])
  return { jwt_token: await tokens.of(wallet, seconds()) }
}

function refused(reason: string): PaymentError {
  return new PaymentError('unauthorized', `${reason}: register again and sign the new nonce`)
}

/** Bytes of the parts: expiry in Unix seconds, random, authentication code. Together 61 digits at most. */
const EXPIRY = 5
const RANDOM = 8
const CODE = 12
const ALL = EXPIRY + RANDOM + CODE

/**
 * Nonces for the sign-in of wallets, as texts of digits. A nonce carries its expiry and a code over it and the wallet:
 * the service keeps those that were used, and none that a stranger only asks for.
 */
export class Nonces {
  readonly #key: Uint8Array
  readonly #use
  readonly #used
  readonly #forget

  /** @param key 32 bytes or more */
  constructor(db: Database, key: Uint8Array) {
    this.#key = key
    this.#use = db.prepare('INSERT OR IGNORE INTO used_nonces (nonce, expires) VALUES (?, ?)')
    this.#used = db.prepare('SELECT count(*) AS used FROM used_nonces')
    this.#forget = db.prepare('DELETE FROM used_nonces WHERE expires < ?')
  }

  /**
   * @param address of the wallet, in lower case
   * @param expires Unix seconds
   */
  issue(address: string, expires: number): string {
    const head = Buffer.alloc(EXPIRY + RANDOM)
    head.writeUIntBE(expires, 0, EXPIRY)
    head.set(randomBytes(RANDOM), EXPIRY)
    return BigInt(`0x${Buffer.concat([head, this.#codeOf(head, address)]).toString('hex')}`).toString()
  }

  /** True for a nonce of this wallet that has not expired; it may have been used. */
  isValid(nonce: string, address: string, now: number): boolean {
    const bytes = bytesOf(nonce)
    if (bytes === undefined) return false
    const head = bytes.subarray(0, EXPIRY + RANDOM)
    const code = this.#codeOf(head, address)
    return timingSafeEqual(code, bytes.subarray(EXPIRY + RANDOM)) && now < bytes.readUIntBE(0, EXPIRY)
  }

  /** Forgets used nonces that have expired. Call it inside a transaction. */
  forget(now: number): void {
    this.#forget.run(now)
  }

  /** How many used nonces are kept. */
  used(): number {
    return this.#used.get().used as number
  }

  /**
   * Uses a valid nonce. Call it inside a transaction.
   * @returns false when it was used before
   */
  use(nonce: string): boolean {
    const expires = bytesOf(nonce)?.readUIntBE(0, EXPIRY) ?? 0
    return this.#use.run(nonce, expires).changes === 1
  }

  #codeOf(head: Uint8Array, address: string): Buffer {
    return createHmac('sha256', this.#key).update(head).update(address).digest().subarray(0, CODE)
  }
}

function bytesOf(nonce: string): Buffer | undefined {
  // One text for one nonce: a leading zero would make another one of it.
  if (!/^[1-9]\d{0,60}$/.test(nonce)) return undefined
  const hex = BigInt(nonce)
    .toString(16)
    .padStart(2 * ALL, '0')
  return hex.length === 2 * ALL ? Buffer.from(hex, 'hex') : undefined
}

/** Length of r and s together, bytes. */
const RS = 64

/** Hash of a personal message of EIP-191 (https://eips.ethereum.org/EIPS/eip-191). */
function personalHash(text: string): Uint8Array {
  const message = Buffer.from(text, 'utf8')
  const prefix = Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`)
  return keccak_256(Buffer.concat([prefix, message]))
}

/**
 * Address of the wallet that signed the text by `personal_sign`, in lower case; undefined when the signature is
 * invalid. A signature whose s is in the upper half is invalid: anyone can make one from the signature of another
 * (EIP-2).
 * @param signature r, s and v, 65 bytes in hexadecimal; v is 27 or 28, or, from some wallets, 0 or 1
 */
export function signerOfText(text: string, signature: string): string | undefined {
  const hex = /^0x([0-9a-f]{130})$/i.exec(signature)?.[1]
  if (hex === undefined) return undefined
  const bytes = Buffer.from(hex, 'hex')
  const v = bytes[RS] as number
  const recovery = v >= 27 ? v - 27 : v
  if (recovery > 1) return undefined
  try {
    if (secp256k1.Signature.fromBytes(bytes.subarray(0, RS), 'compact').hasHighS()) return undefined
    const recovered = Uint8Array.of(recovery, ...bytes.subarray(0, RS))
    const compressed = secp256k1.recoverPublicKey(recovered, personalHash(text), { prehash: false })
    return addressOfKey(secp256k1.Point.fromBytes(compressed).toBytes(false))
  } catch {
    return undefined
  }
}

/** Signs as `personal_sign` does: `0x` and r, s and v (27 or 28) in hexadecimal. */
export function signText(text: string, secretKey: Uint8Array): string {
  const signature = secp256k1.sign(personalHash(text), secretKey, { prehash: false, format: 'recovered' })
  const v = 27 + (signature[0] as number)
  return `0x${Buffer.from(signature.subarray(1)).toString('hex')}${v.toString(16)}`
}

/**
 * Limits how often clients on other machines sign in, by their addresses. A program on this machine may be a server for
 * many wallets.
 */
export function rated(answer: Route['answer']): Route['answer'] {
  return async (exchange) => {
    const { local, network } = clientOf(exchange.request)
    return local ? answer(exchange) : exchange.context.signIns.run(network, async () => answer(exchange))
  }
}

/** POST /user/register: a nonce for the wallet to sign, which can be used once and soon expires. */
export async function register(exchange: Exchange): Promise<object> {
  const { nonces, seconds, limits } = exchange.context
  const fields = await readJson(exchange)
  const address = readAddress('public_key_address', fields.required('public_key_address'))
  return { nonce: nonces.issue(address, seconds() + limits.nonceSeconds) }
}

/** The JWTs of signed-in wallets, valid for a day. `sub` is the number of the wallet, a comma, and the network. */
export class Tokens {
  readonly #tokens: DayTokens
  readonly #wallets: Wallets
  readonly #networkName: string

  /** @param key 32 bytes or more */
  constructor(key: Uint8Array, wallets: Wallets, networkName: string) {
    this.#tokens = new DayTokens(key, 'storage-payment')
    this.#wallets = wallets
    this.#networkName = networkName
  }

  /** @param now Unix seconds */
  of({ id }: KnownWallet, now: number): Promise<string> {
    return this.#tokens.sign(`${id},${this.#networkName}`, now)
  }

  /**
   * Undefined unless the token is valid, and was issued for this network.
   * @param now Unix seconds
   */
  async walletOf(token: string, now: number): Promise<KnownWallet | undefined> {
    const claims = await this.#tokens.read(token, now)
    const [, id, network] = /^(\d{1,15}),(.*)$/.exec(claims?.sub ?? '') ?? []
    return network === this.#networkName ? this.#wallets.get(Number(id)) : undefined
  }
}
