import { clientOf } from '../http/server.js'
import { signerOfText } from './addresses.js'
import { PaymentError } from './errors.js'
import { type PaymentExchange, type Route, readAddress, readJson } from './exchange.js'

const RETRY_SECONDS = 300

/** POST /user/login_by_wallet_signature: the signature of a nonce for a JWT, valid for a day. */
export async function logInByWalletSignature(exchange: PaymentExchange): Promise<object> {
  const { nonces, tokens, db, seconds, networkName, limits } = exchange.context
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
  const wallet = await db.transaction(async ({ usedNonces, wallets }) => {
    await usedNonces.forget(seconds())
    if ((await usedNonces.count()) >= limits.maxUsedNonces) return 'full'
    if (!(await usedNonces.use(nonce))) return undefined
    return (await wallets.signIn(address, seconds(), limits.maxNewWallets)) ?? 'full'
  })
  if (wallet === undefined) throw refused('the nonce was used before')
  if (wallet === 'full') throw new PaymentError('busy', 'too many wallets sign in', ['Retry-After', RETRY_SECONDS])
  return { jwt_token: await tokens.of(wallet, seconds()) }
}

function refused(reason: string): PaymentError {
  return new PaymentError('unauthorized', `${reason}: register again and sign the new nonce`)
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
export async function register(exchange: PaymentExchange): Promise<object> {
  const { nonces, seconds, limits } = exchange.context
  const fields = await readJson(exchange)
  const address = readAddress('public_key_address', fields.required('public_key_address'))
  return { nonce: nonces.issue(address, seconds() + limits.nonceSeconds) }
}
