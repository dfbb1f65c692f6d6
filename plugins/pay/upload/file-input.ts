import { z } from 'zod'
import { address } from '../wire/address.js'
import { MOST_DAYS, type madeUpload, type UploadTerms } from './input.js'
import type { FoundUpload } from './outcome.js'

export const UPLOAD_FILE = 'pay:UploadToIpfs'

/** Query of UploadToIpfs. */
export const fileQuery = z.strictObject({
  'duration-days': z
    .number()
    .int()
    .min(1)
    .max(MOST_DAYS)
    .optional()
    .describe('Days for which storage providers keep it. A form may have `duration` instead.'),
  'file-name': z
    .string()
    .min(1)
    .max(1024)
    .optional()
    .describe('Name under which the service lists the file; default that of a form.'),
  'file-type': z.enum(['0', '1']).optional().describe('0: by a user, also if absent; 1: for an NFT.'),
  'wallet-address': address.optional().describe('Variant B: the wallet; default that of the plugin.'),
})

/** Input of the job. Plain JSON. */
export interface FileInput extends UploadTerms {
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** Present once the file was sent: what the service made of it, or that its answer was lost. */
  readonly outcome?: FoundUpload | 'lost'
}

export type FileResult = z.output<typeof madeUpload>
