import { filPerDay, serviceOptions } from 'dealgate/paid'
import { z } from 'zod'
import type { OwnerUser } from './owner-user.js'
import { FIELD_NAMES } from './platform.js'

const DAY = 86_400
const { url, seconds } = serviceOptions

export const taskOptions = z.strictObject({
  platformUrl: url().describe('Address of the task platform. Default: the one that the server was started with.'),
  timeoutSeconds: seconds(1, 600, 30).describe('How long the task platform may take for an answer.'),
  createTimeoutSeconds: seconds(1, 3600, 300).describe('How long it may take to take in a new task with its CSV.'),
  reconcileAfterSeconds: seconds(1, 30 * DAY, DAY).describe(
    'A task whose answer was lost counts as not created once the list of tasks has lacked it for so long.',
  ),
  offsets: z
    .enum(['records', 'pages'])
    .default('records')
    .describe('What the platform means by `offset`: the number of records before the page, or of pages.'),
  pageSize: z
    .number()
    .int()
    .min(1)
    .max(1000)
    .default(100)
    .describe('Records that are requested at once where the client states no number.'),
  maxSpendPerDay: filPerDay().describe(
    'Fil that new tasks, together with deals, may cost per day, UTC; `none` for no cap.',
  ),
  owner: z
    .custom<OwnerUser>((value) => typeof Object(value).token === 'function', 'must be an OwnerUser')
    .optional()
    .describe('For programs: the user as which the owner acts. The command line gives that of the embedded platform.'),
  names: z
    .partialRecord(z.enum(FIELD_NAMES), z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/))
    .default({})
    .describe(
      'Names that the platform uses for fields of the sign-in and of a new task, such as {"Email": "username"}.',
    ),
})

export type TaskOptions = z.output<typeof taskOptions>
