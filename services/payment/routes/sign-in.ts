import { z } from 'zod'
import { signerOfText } from '../addresses.js'
import { PaymentError } from '../errors.js'
import { address, required } from '../fields.js'
import { type PaymentRoute, route } from '../route.js'

const RETRY_SECONDS = 300

const register = route({
  method: 'POST',
  path: '/api/v1/user/register',
  access: 'public',
  only: 'signedIn',
  rated: true,
  summary: 'returns a nonce for the wallet to sign, which can be used once and soon expires',
  body: { public_key_address: address('public_key_address') },
  data: z.object({ nonce: z.string().describe('Digits.') }),
  async handle({ context, body }) {
    const { nonces, seconds, limits } = context
    const { public_key_address: address } = await body()
    return { nonce: nonces.issue(address, seconds() + limits.nonceSeconds) }
  },
})

const logIn = route({
  method: 'POST',
  path: '/api/v1/user/login_by_wallet_signature',
  access: 'public',
  only: 'signedIn',
  rated: true,
  summary: 'returns a JWT, valid for a day, for the signature of a nonce',
  body: {
    nonce: required('nonce'),
    signature: required('signature').describe('Of the nonce, by personal_sign.'),
    public_key_address: address('public_key_address'),
    network: required('network').describe('Name of the chain environment.'),
  },
  data: z.object({ jwt_token: z.string() }),
  async handle({ context, body }) {
    const { nonces, tokens, db, seconds, networkName, limits } = context
    const { nonce, signature, public_key_address: address, network } = await body()
    if (network !== networkName) {
      throw new PaymentError('value', `network must be ${networkName}, the network of this service`)
    }
    // The nonce is checked first: it costs less than the signature, and only the service makes valid ones.
    if (!nonces.isValid(nonce, address, seconds())) throw refused('the nonce is not of this wallet, or has expired')
    if (signerOfText(nonce, signature) !== address) throw refused('the signature is not that of the wallet')
    const wallet = await db.transaction(async ({ usedNonces, wallets }) => {
      await usedNonces.forget(seconds())
      if ((await usedNonces.count()) >= limits.maxUsedNonces) return 'full'
      if (!(await usedNonces.use(nonce))) return undefined
      return (await wallets.signIn(address, seconds(), limits.maxNewWallets)) ?? 'full'
    })
    if (wallet === undefined) throw refused('the nonce was used before')
    if (wallet === 'full') throw new PaymentError('busy', 'too many wallets sign in', ['Retry-After', RETRY_SECONDS])
    return { jwt_token: await tokens.of(wallet, seconds()) }
  },
})

function refused(reason: string): PaymentError {
  return new PaymentError('unauthorized', `${reason}: register again and sign the new nonce`)
}

/** How wallets sign in. */
export const signIn: readonly PaymentRoute[] = [register, logIn]
