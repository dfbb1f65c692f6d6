import { AnswerLost, type ServiceAnswer, ServiceClient } from '../common/service-client.js'
import { signText } from '../services/payment/addresses.js'
import { paymentOrderText } from '../services/payment/billing.js'
import { describeError, Failure } from './command.js'
import type { WalletKey } from './keystore.js'

const CONFLICT = 409

/** Other texts may be orders to pay, at this service or another, which the signature would make valid. */
const NONCE = /^\d{1,78}$/

/** True for a text that a sign-in may have signed. */
export function isNonce(text: string): boolean {
  return NONCE.test(text)
}

interface UploadToPay {
  readonly wCid: string
  /** Least payment, millionths of a stable coin. */
  readonly price: bigint
}

/** The calls of the embedded storage payment API that a wallet needs to pay. Each throws Failure. */
export class PaymentApi {
  readonly #url: string
  readonly #client: ServiceClient
  readonly #network: string
  readonly #wallet: WalletKey
  #token: string | undefined

  /**
   * @param url of the service, without `/api/v1`
   * @param network its name
   */
  constructor(url: string, network: string, wallet: WalletKey) {
    this.#url = url.replace(/\/$/, '')
    this.#client = new ServiceClient({ service: 'storage payment API', url: this.#url })
    this.#network = network
    this.#wallet = wallet
  }

  /**
   * Throws Failure if the service takes payments on a chain: they are transactions, which this program does not send.
   * Throws it for a service of another network, too: what is signed for it must not be an order elsewhere.
   */
  async requireLedger(): Promise<void> {
    const params = await this.#must('/common/system/params')
    const name = params.chain_name
    if (name !== undefined && name !== this.#network) {
      throw new Failure(
        `The storage payment API at ${this.#url} is of the network ${String(name).slice(0, 100)}, not of ${this.#network}: ` +
          'name the one that is meant with --payment-network.',
      )
    }
    // An order without members is refused for another reason where orders are taken.
    const response = await this.#send('/billing/deal/lockpayment', {})
    if (response.status !== CONFLICT) return
    const contract = params.payment_contract_address ?? params.PAYMENT_CONTRACT_ADDRESS
    throw new Failure(
      `The storage payment API at ${this.#url} takes payments on a chain, not in the embedded ledger: ` +
        `call lockTokenPayment of the contract ${String(contract)} with the wallet of the upload. docs/payment.md describes it.`,
    )
  }

  /** Signs in; without effect in a variant without sign-in. */
  async signIn(): Promise<void> {
    const { address, secretKey } = this.#wallet
    const registered = await this.#call('/user/register', { public_key_address: address }, true)
    if (registered === undefined) return
    const nonce = String(registered.nonce)
    if (!isNonce(nonce)) {
      throw new Failure(
        `The storage payment API at ${this.#url} wants a text signed that is no nonce: nothing was signed.`,
      )
    }
    const { jwt_token: token } = await this.#must('/user/login_by_wallet_signature', {
      nonce,
      signature: signText(nonce, secretKey),
      public_key_address: address,
      network: this.#network,
    })
    this.#token = String(token)
  }

  /** Throws Failure for a free upload, too. @param id number of the upload */
  async upload(id: string): Promise<UploadToPay> {
    const data = await this.#must(`/storage/source_file_upload/${id}`)
    if (data.is_free === true) throw new Failure(`The upload ${id} is free: there is nothing to pay.`)
    const price = String(data.pay_amount)
    if (!/^\d{1,18}$/.test(price)) throw new Failure(`The storage payment API at ${this.#url} names no price.`)
    return { wCid: String(data.w_cid), price: BigInt(price) }
  }

  /** @returns hash of the payment */
  async pay(wCid: string, amount: bigint): Promise<string> {
    const signature = signText(paymentOrderText(wCid, amount, this.#network), this.#wallet.secretKey)
    const order = { w_cid: wCid, pay_amount: String(amount), signature }
    const { pay_tx_hash: hash } = await this.#must('/billing/deal/lockpayment', order)
    return String(hash)
  }

  async #must(path: string, body?: object): Promise<Record<string, unknown>> {
    return (await this.#call(path, body)) ?? {}
  }

  /** @param optional true: an unknown path gives undefined */
  async #call(path: string, body?: object, optional = false): Promise<Record<string, unknown> | undefined> {
    const response = await this.#send(path, body)
    const { status, message, data } = (response.json ?? {}) as { status?: unknown; message?: unknown; data?: unknown }
    if (optional && response.status === 404) return undefined
    if (status !== 'success' || typeof data !== 'object' || data === null) {
      const reason = typeof message === 'string' ? message.slice(0, 500) : `its answer is HTTP ${response.status}`
      throw new Failure(`The storage payment API at ${this.#url} refuses ${path}: ${reason}`)
    }
    return data as Record<string, unknown>
  }

  async #send(path: string, body?: object): Promise<ServiceAnswer> {
    try {
      return await this.#client.send({
        method: body === undefined ? 'GET' : 'POST',
        path: ['api', 'v1', ...path.split('/').slice(1)],
        token: this.#token,
        ...(body !== undefined && { body: { kind: 'json', value: { ...body } } }),
      })
    } catch (error) {
      const reason = describeError((error as Error).cause)
      if (error instanceof AnswerLost) {
        const again = body === undefined ? '' : ' It may have taken the request; a repeated one counts once.'
        throw new Failure(`The answer of the storage payment API at ${this.#url} was lost: ${reason}.${again}`, {
          cause: error,
        })
      }
      throw new Failure(`The storage payment API at ${this.#url} cannot be reached: ${reason}`, { cause: error })
    }
  }
}
