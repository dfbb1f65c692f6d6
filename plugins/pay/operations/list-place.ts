import type { Context } from 'dealgate'
import { S3Error } from 'dealgate'
import type { PayParts } from '../parts.js'
import { address } from '../wire/address.js'

/** A call that lists what a wallet has: of the caller, or of the wallet that its path names. */
export interface ListPlace {
  readonly name: string
  readonly path: string
  members?(context: Context): AsyncIterable<Readonly<Record<string, string>>>
}

export const OF_CALLER = {
  uploads: { name: 'ListUploads', path: '/-/pay/v1/uploads' },
  billing: { name: 'ListBilling', path: '/-/pay/v1/billing' },
  uploadsCsv: { name: 'GetUploadsCsv', path: '/-/pay/v1/uploads.csv' },
  billingCsv: { name: 'GetBillingCsv', path: '/-/pay/v1/billing.csv' },
} as const satisfies Record<string, ListPlace>

/** The same by the address of the wallet, which the bucket `-` cannot name in a query. */
export function ofWallet(parts: PayParts) {
  const below = (name: string, rest: string): ListPlace => ({
    name,
    path: `/-/pay/v1/wallets/{WalletAddress}/${rest}`,
    members: (context) => ownWallet(parts, context),
  })
  return {
    uploads: below('ListWalletUploads', 'uploads'),
    billing: below('ListWalletBilling', 'billing'),
    uploadsCsv: below('GetWalletUploadsCsv', 'uploads.csv'),
    billingCsv: below('GetWalletBillingCsv', 'billing.csv'),
  }
}

/** The wallet as which the caller acts, if it has one. */
async function* ownWallet(parts: PayParts, { caller }: Context) {
  const isB = (await parts.variant()) === 'b'
  const session = isB || !caller ? undefined : await parts.wallets.get(caller.identity)
  const wallet = isB ? parts.options.wallet?.toLowerCase() : session?.address
  if (wallet !== undefined) yield { WalletAddress: wallet }
}

/** Several calls answer the same list: a policy decides about them by one action. */
export function forAction(action: 'pay:ListUploads' | 'pay:ListBilling') {
  return {
    action,
    ownRules: true,
    async admit(_request: unknown, { caller, checks }: Context) {
      if (caller) await checks.requireAction(action)
    },
  } as const
}

/** The query, with the wallet that the path names. Throws InvalidArgument for a path that names no address. */
export function withWallet<Query extends { readonly 'wallet-address'?: string | undefined }>(
  query: Query,
  { WalletAddress }: Readonly<Record<string, string>>,
): Query {
  if (WalletAddress === undefined) return query
  if (address.safeParse(WalletAddress).success) return { ...query, 'wallet-address': WalletAddress }
  throw new S3Error('InvalidArgument', {
    message: 'The path must name a wallet: 0x and 40 hexadecimal digits.',
    fields: { ArgumentName: 'WalletAddress' },
  })
}
