import { readFileSync } from 'node:fs'
import { z } from 'zod'

/** Largest ABI file, bytes. */
const MAX_BYTES = 2 ** 20

const inputSchema = z.looseObject({ name: z.string(), type: z.string(), indexed: z.boolean().default(false) })
const eventSchema = z.looseObject({
  type: z.literal('event'),
  name: z.string(),
  inputs: z.array(inputSchema),
})
const fileSchema = z
  .union([z.array(z.unknown()), z.looseObject({ abi: z.array(z.unknown()) })])
  .transform((value) => (Array.isArray(value) ? value : value.abi))

export interface AbiEvent {
  readonly type: 'event'
  readonly name: string
  readonly inputs: readonly { readonly name: string; readonly type: string; readonly indexed: boolean }[]
}

/** Events that are followed, and the members that each must have. `id` is the `w_cid` of the upload. */
const FOLLOWED = {
  LockPayment: { id: 'string', token: 'address', lockedFee: 'uint256', recipient: 'address', deadline: 'uint256' },
  UnlockPayment: { id: 'string', token: 'address', cost: 'uint256' },
  Refund: { cid: 'string', amount: 'uint256' },
  ExpirePayment: { id: 'string', token: 'address', amount: 'uint256' },
} as const

/** The event without which no payment would ever be seen. */
const NEEDED = 'LockPayment'

const event = (name: string, inputs: string): AbiEvent => ({
  type: 'event',
  name,
  inputs: inputs.split(', ').map((input) => {
    const [type = '', of = ''] = input.split(' ')
    return { name: of, type, indexed: false }
  }),
})

const DEFAULT: readonly AbiEvent[] = [
  event(
    'LockPayment',
    'string id, address token, uint256 lockedFee, uint256 minPayment, address recipient, uint256 deadline, uint256 size, uint8 copyLimit',
  ),
  event('UnlockPayment', 'string id, address token, uint256 cost, uint256 restToken, address recipient, address owner'),
  event('Refund', 'string cid, address owner, uint256 amount'),
  event('ExpirePayment', 'string id, address token, uint256 amount, address owner'),
]

/**
 * The events that are followed.
 * @param file JSON with an ABI, or an object with one as `abi`, as compilers write it; absent: the usual events
 * @throws ChainMisuse when the file cannot be read, or the events in it lack something
 */
export function readAbi(file: string | undefined): readonly AbiEvent[] {
  if (file === undefined) return DEFAULT
  const events = readFile(file).flatMap((entry) => {
    const { success, data } = eventSchema.safeParse(entry)
    return success && data.name in FOLLOWED ? [data] : []
  })
  for (const { name, inputs } of events) {
    for (const [member, type] of Object.entries(FOLLOWED[name as keyof typeof FOLLOWED])) {
      const input = inputs.find((one) => one.name === member)
      if (input?.type !== type) throw new ChainMisuse(`In ${file}, the event ${name} must have ${type} ${member}.`)
      if (type === 'string' && input.indexed) {
        throw new ChainMisuse(`In ${file}, ${member} of the event ${name} is indexed: its text is not in the logs.`)
      }
    }
  }
  if (!events.some(({ name }) => name === NEEDED)) throw new ChainMisuse(`${file} has no event ${NEEDED}.`)
  return events
}

function readFile(file: string): readonly unknown[] {
  try {
    const text = readFileSync(file)
    if (text.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
    return fileSchema.parse(JSON.parse(text.toString('utf8')))
  } catch (error) {
    const reason = error instanceof z.ZodError ? 'it is no ABI' : (error as Error).message
    throw new ChainMisuse(`The ABI ${file} cannot be used: ${reason}.`, { cause: error })
  }
}

/** A chain cannot be used as configured. The message says what to do and contains no URL. */
export class ChainMisuse extends Error {
  override readonly name = 'ChainMisuse'
}

export interface LogPosition {
  readonly block: number
  readonly blockHash: string
  readonly index: number
  /** Hash of the transaction, in lower case. */
  readonly hash: string
}

/**
 * What happened to the payment for an upload. Amounts are the smallest unit of the token, and may be any of 256 bits.
 * Addresses are in lower case.
 */
export type ChainEvent = LogPosition & { readonly wCid: string; readonly amount: bigint } & (
    | {
        readonly kind: 'lock'
        readonly token: string
        readonly recipient: string
        /** Address that pays, if the event tells it: otherwise the sender of the transaction pays. */
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
export function eventOf(place: LogPosition, name: string, values: Values): ChainEvent | undefined {
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
