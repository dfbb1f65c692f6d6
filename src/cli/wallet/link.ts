import { signText } from '../../services/payment/sign-in/personal-sign.js'
import { callEndpoint, type Endpoint } from '../endpoint-call.js'
import { Failure } from '../failure.js'
import type { Signer } from '../running.js'
import type { WalletKey } from './keystore.js'
import { isNonce } from './payment-api.js'

/**
 * Signs the wallet in through the endpoint, which links it to the key pair. The key of the wallet stays here: only a
 * nonce is signed with it. Throws Failure.
 * @param url of an S3 endpoint with the plugin `pay`, without a path
 * @returns when the link ends, ISO 8601, if the service says so
 */
export async function linkWallet(url: URL, signer: Signer, wallet: WalletKey): Promise<string | undefined> {
  const endpoint = { url, signer }
  const { address, secretKey } = wallet
  const { ChainName: network } = await call(endpoint, 'GET', 'system-config')
  const { Nonce: nonce } = await call(endpoint, 'POST', 'wallet/nonce', { PublicKeyAddress: address })
  if (typeof nonce !== 'string' || !isNonce(nonce)) {
    throw new Failure(`${endpoint.url.origin} wants a text signed that is no nonce: nothing was signed.`)
  }
  const session = { Nonce: nonce, Signature: signText(nonce, secretKey), PublicKeyAddress: address, Network: network }
  const { ExpiresAt: ends } = await call(endpoint, 'POST', 'wallet/session', { ...session, Store: true })
  return typeof ends === 'string' ? ends : undefined
}

/** @param name behind `/-/pay/v1/` */
function call(endpoint: Endpoint, method: 'GET' | 'POST', name: string, body?: object) {
  return callEndpoint(endpoint, { method, path: `/-/pay/v1/${name}`, ...(body && { body }) })
}
