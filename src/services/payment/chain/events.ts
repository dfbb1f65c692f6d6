/** Where in the chain a log is. */
export interface LogPlace {
  readonly block: number
  readonly blockHash: string
  /** Position of the log in its block. */
  readonly index: number
  /** Hash of the transaction, in lower case. */
  readonly hash: string
}

/**
 * What happened to the payment for an upload. Amounts are the smallest unit of the token, and may be any of 256 bits.
 * Addresses are in lower case.
 */
export type ChainEvent = LogPlace & { readonly wCid: string; readonly amount: bigint } & (
    | {
        readonly kind: 'lock'
        readonly token: string
        readonly recipient: string
        /** Who pays, if the event tells it: else it is the sender of the transaction. */
        readonly owner: string | undefined
        /** Unix seconds. */
        readonly deadline: bigint
      }
    | { readonly kind: 'unlock' | 'refund'; readonly token: string | undefined }
  )

type Values = Readonly<Record<string, unknown>>

/**
 * Reads a decoded log. The ABI has been checked: members have their types.
 * @param name of the event
 */
export function eventOf(place: LogPlace, name: string, values: Values): ChainEvent | undefined {
  const base = { ...place, wCid: (values.id ?? values.cid) as string }
  const token = lower(values.token)
  switch (name) {
    case 'LockPayment':
      return {
        ...base,
        kind: 'lock',
        amount: values.lockedFee as bigint,
        token: token as string,
        recipient: lower(values.recipient) as string,
        owner: lower(values.owner),
        deadline: values.deadline as bigint,
      }
    case 'UnlockPayment':
      return { ...base, kind: 'unlock', amount: values.cost as bigint, token }
    case 'Refund':
    case 'ExpirePayment':
      return { ...base, kind: 'refund', amount: values.amount as bigint, token }
    default:
      return undefined
  }
}

function lower(value: unknown): string | undefined {
  return typeof value === 'string' ? value.toLowerCase() : undefined
}
