import { z } from 'zod'
import { address } from '../wire/address.js'

export const UPLOAD = 'pay:UploadObjectToIpfs'

/** Most days that are asked of a service; each has bounds of its own. */
export const MOST_DAYS = 10_000

/** Body of UploadObjectToIpfs. */
export const uploadRequest = z.strictObject({
  DurationDays: z.number().int().min(1).max(MOST_DAYS).describe('Days for which storage providers keep it.'),
  FileType: z.enum(['0', '1']).optional().describe('0: by a user, also if absent; 1: for an NFT.'),
  WalletAddress: address.optional().describe('Variant B: the wallet; default that of the plugin.'),
})
export type UploadRequest = z.output<typeof uploadRequest>

/** `duration` of the interface. */
export const uploadAliases = { Duration: 'DurationDays' } as const

/** What an upload is ordered on. */
export interface UploadTerms {
  /** Days. */
  readonly days: number
  readonly fileType: '0' | '1'
  /** The wallet that the job was ordered for, in lower case; absent for a token of the request that came without. */
  readonly wallet?: string
  /** The token that the request carried, sealed. */
  readonly bearer?: string
}

/** Input of the job. Plain JSON. */
export interface UploadInput extends UploadTerms {
  readonly bucket: string
  readonly key: string
  readonly stamp: string
}

/** Result of an upload, of an object or of a file. */
export const madeUpload = z.object({
  JobId: z.string(),
  SourceFileUploadId: z.number().int(),
  PayloadCid: z.string().describe('CID of the content.'),
  IpfsUrl: z.string(),
  FileSize: z.number().int().describe('Bytes.'),
  WCid: z.string().describe('Names the upload in a payment.'),
  DurationDays: z.number().int(),
  Status: z.string().optional().describe('As the service stated it at the upload.'),
})

export const uploadResult = z.object({ Bucket: z.string(), Key: z.string(), ...madeUpload.shape })
export type UploadResult = z.output<typeof uploadResult>

/** What the token in a job was sealed for. */
export const BEARER_PURPOSE = 'pay:job-bearer'

const MAX_NAME = 255

/** The name under which the service lists an object: the last part of its key, without what forms cannot carry. */
export function fileNameOf(key: string): string {
  const last = key.split('/').findLast((part) => part !== '') ?? ''
  const name = last.replace(/[\p{Cc}"\\]/gu, '_').trim()
  // Parsers of forms drop these, as they would name folders.
  if (['', '.', '..'].includes(name)) return 'file'
  // In whole characters.
  let kept = ''
  for (const character of name) {
    if (kept.length + character.length > MAX_NAME) break
    kept += character
  }
  return kept
}
