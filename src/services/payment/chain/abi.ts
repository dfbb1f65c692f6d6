import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { ChainMisuse } from './options.js'

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

/** An event of the contract, as an ABI declares it. */
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

/** Without it, no payment would ever be seen. */
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
