import { filPerDay, serviceOptions } from 'dealgate/paid'
import { z } from 'zod'
import type { OwnerWallet } from './owner-wallet.js'

const DAY = 86_400

const { url, seconds } = serviceOptions

export const payOptions = z.strictObject({
  paymentUrl: url().describe('Address of the storage payment API. Default: the one that the server was started with.'),
  variant: z
    .enum(['auto', 'a', 'b'])
    .default('auto')
    .describe('Variant of the interface: `a` with sign-in of wallets, `b` without; `auto` asks the service.'),
  wallet: z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/, 'must be 0x and 40 hexadecimal digits')
    .optional()
    .describe('Variant `b`: the wallet of calls that name none.'),
  tokenHeader: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be a header name in lower case')
    .default('authorization')
    .describe('Header that carries the token of a sign-in; in `authorization` it follows `Bearer`.'),
  detailUploadId: z
    .enum(['query', 'path'])
    .default('query')
    .describe(
      'Where the service expects the upload id of a deal detail: in the query, or behind the deal id in the path.',
    ),
  timeoutSeconds: seconds(1, 600, 30).describe('How long the service may take for an answer.'),
  uploadTimeoutSeconds: seconds(1, 3600, 300).describe(
    'How long it may accept no byte of an upload, and how long it may take for the answer to one.',
  ),
  reconcileAfterSeconds: seconds(1, 30 * DAY, DAY).describe(
    'An upload whose answer was lost counts as not made once the list of uploads has lacked it for so long.',
  ),
  owner: z
    .custom<OwnerWallet>((value) => typeof Object(value).wallet === 'function', 'must be an OwnerWallet')
    .optional()
    .describe('For programs: the wallet as which the owner acts. The command line gives that of the embedded service.'),
  maxSpendPerDay: filPerDay().describe(
    'Fil that uploads, together with deals and tasks, may cost per day, UTC; `none` for no cap.',
  ),
})

export type PayOptions = z.output<typeof payOptions>
