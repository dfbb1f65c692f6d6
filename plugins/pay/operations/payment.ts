import { capOf } from 'dealgate/paid'
import { type Context, defineCall, formatAmount, S3Error, type S3Request, withRaw } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { mint, payment, walletFacts } from '../documents.js'
import { address, apiPath, service } from '../service.js'
import type { Wallet } from '../sign-in.js'
import { SOURCE, sendAsWallet } from './send.js'

const amount = z.string()

/** The number of an upload in a path. Throws NoSuchUpload for any other text. */
export function uploadIdOf({ SourceFileUploadId = '' }: Readonly<Record<string, string>>): number {
  if (/^[1-9]\d{0,14}$/.test(SourceFileUploadId)) return Number(SourceFileUploadId)
  throw noSuchUpload(SourceFileUploadId)
}

export function noSuchUpload(id: string | number): S3Error {
  return new S3Error('NoSuchUpload', {
    message: 'The payment service has no such upload of this wallet.',
    fields: { SourceFileUploadId: id },
  })
}

export function getPaymentInfo(deps: PayDeps) {
  return defineCall({
    name: 'GetPaymentInfo',
    source: SOURCE,
    summary: 'Returns the payment that is locked for an upload.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/uploads/{SourceFileUploadId}/payment' },
    result: payment.shown,
    async answer({ request }, context) {
      const id = uploadIdOf(request.params)
      const answer = await askPayment(deps, context, request, id)
      return withRaw(service.dataOf(answer, payment.read), answer.json)
    },
  })
}

/** Asks for the payment of an upload. Throws NoSuchUpload. */
export function askPayment(
  deps: PayDeps,
  context: Pick<Context, 'caller'>,
  request: Pick<S3Request, 'headers' | 'signal'>,
  id: number,
) {
  const callOf = () =>
    ({
      method: 'GET',
      path: apiPath('billing', 'deal', 'lockpayment', 'info'),
      query: { source_file_upload_id: id },
    }) as const
  return sendAsWallet(deps, context, request, {}, callOf, { missing: () => noSuchUpload(id) })
}

/** Answers of services without such a call: it is not in the interface. */
const UNKNOWN_CALL = ['NoSuchUpload', 'InvalidArgument', 'PaymentRefused', 'UpstreamBadResponse']

/** What is spent is known without a wallet. */
const NO_WALLET = ['WalletNotLinked', 'UpstreamAuthFailed']

export function getWallet(deps: PayDeps) {
  return defineCall({
    name: 'GetWallet',
    source: SOURCE,
    summary: 'Returns what the wallet has of each coin and has locked, and what is left to spend today.',
    access: 'bearer',
    on: { method: 'GET', resource: 'service', path: '/-/pay/v1/wallet' },
    query: z.strictObject({ 'wallet-address': address.optional().describe('Variant B: the wallet.') }),
    result: z.object({
      WalletAddress: z.string().optional(),
      Kept: z
        .boolean()
        .optional()
        .describe('True for the wallet that the server keeps for its owner: PayUpload, FundWallet.'),
      Wallet: walletFacts.shown
        .omit({ WalletAddress: true })
        .optional()
        .describe('Absent where the service has no such call.'),
      SpentToday: amount
        .optional()
        .describe('Decimal, as text: fil that deals, uploads and tasks may cost today (UTC).'),
      DailyCap: amount.optional().describe('Decimal, as text: the cap of this plugin for them; absent for none.'),
      LeftToday: amount.optional().describe('Decimal, as text: fil of it that are left.'),
    }),
    async answer({ request, query }, context) {
      const spent = await spending(deps, context)
      let own: string | undefined
      const callOf = ({ address }: Wallet) => {
        own = address
        return { method: 'GET', path: apiPath('billing', 'wallet'), query: { wallet_address: address } } as const
      }
      const naming = { named: query['wallet-address'], needsAddress: true }
      const missing = () => noSuchUpload('')
      const found = await sendAsWallet(deps, context, request, naming, callOf, { missing })
        .then((answer) => service.dataOf(answer, walletFacts.read))
        .catch((error) => {
          if (error instanceof S3Error && [...UNKNOWN_CALL, ...(spent ? NO_WALLET : [])].includes(error.code))
            return undefined
          throw error
        })
      const { WalletAddress = own, ...wallet } = found ?? {}
      const kept = await deps.owner.walletOf(context.caller?.identity)
      return {
        ...(WalletAddress !== undefined && { WalletAddress, Kept: WalletAddress.toLowerCase() === kept?.address }),
        ...(found && { Wallet: wallet as Omit<typeof found, 'WalletAddress'> }),
        ...spent,
      }
    },
  })
}

/** What the server spends, for key pairs of its own account that have all rights. */
async function spending({ ledger, options }: PayDeps, { caller }: Pick<Context, 'caller'>) {
  const { rights, policies, account } = caller?.identity ?? {}
  if (!caller || rights || policies || account) return undefined
  const cap = capOf(options.maxSpendPerDay)
  const spent = await ledger.spentToday()
  return {
    SpentToday: formatAmount(spent),
    ...(cap !== undefined && { DailyCap: formatAmount(cap), LeftToday: formatAmount(cap > spent ? cap - spent : 0n) }),
  }
}

export function recordMint(deps: PayDeps) {
  return defineCall({
    name: 'RecordMint',
    source: SOURCE,
    summary: 'Records the NFT that was minted for an upload.',
    access: 'bearer',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/uploads/{SourceFileUploadId}/mint' },
    body: z.strictObject({
      TxHash: z.string().min(1).max(200),
      TokenId: z.string().min(1).max(100),
      MintAddress: z.string().min(1).max(100),
    }),
    aliases: { nft_tx_hash: 'TxHash' },
    result: mint.shown,
    async answer({ request, body }, context) {
      const id = uploadIdOf(request.params)
      const callOf = () =>
        ({
          method: 'POST',
          path: apiPath('storage', 'mint', 'info'),
          // The servers of this interface want the number as such, and the token as text.
          body: {
            kind: 'json',
            value: {
              source_file_upload_id: id,
              tx_hash: body.TxHash,
              token_id: body.TokenId,
              mint_address: body.MintAddress,
            },
          },
        }) as const
      const answer = await sendAsWallet(deps, context, request, {}, callOf, {
        mayRepeat: false,
        missing: () => noSuchUpload(id),
        conflict: (message) =>
          new S3Error('DuplicateRequest', { message: `Another NFT is recorded for this upload: ${message}` }),
      })
      return withRaw(service.dataOf(answer, mint.read), answer.json)
    },
  })
}
