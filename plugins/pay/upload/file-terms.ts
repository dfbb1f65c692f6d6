import { type FileForm, S3Error, type z } from 'dealgate'
import { address } from '../wire/address.js'
import type { FileInput, fileQuery } from './file-input.js'
import { fileNameOf, MOST_DAYS } from './input.js'

type Query = z.output<typeof fileQuery>

/** What the query says of a file, and the form, if it comes in one. */
export interface FileTerms extends Pick<FileInput, 'name' | 'days' | 'fileType'> {
  /** Address of the wallet; undefined: that of the plugin, or of the log-in. */
  readonly wallet: string | undefined
}

/** Throws S3Error InvalidArgument. */
export function termsOfQuery(query: Query): FileTerms {
  const { 'duration-days': days, 'file-name': name } = query
  if (days === undefined) throw invalid('duration-days', 'is required')
  if (name === undefined) throw invalid('file-name', 'is required')
  return { name: fileNameOf(name), days, fileType: query['file-type'] ?? '0', wallet: query['wallet-address'] }
}

/**
 * The query counts more than the form, whose texts have the names of the interface. Throws S3Error InvalidArgument.
 */
export function termsOfForm(query: Query, form: Pick<FileForm, 'field' | 'fileName'>): FileTerms {
  const text = (name: string): string | undefined => form.field(name)?.trim() || undefined
  const type = query['file-type'] ?? text('file_type') ?? '0'
  if (type !== '0' && type !== '1') throw invalid('file_type', 'must be 0 or 1')
  const named = query['wallet-address'] ?? text('wallet_address')
  const wallet = named === undefined ? undefined : address.safeParse(named)
  if (wallet?.success === false) throw invalid('wallet_address', 'must be an address')
  return {
    // Browsers write a quotation mark so (https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data).
    name: fileNameOf(query['file-name'] ?? form.fileName.replaceAll('%22', '"')),
    days: query['duration-days'] ?? daysOf(text('duration')),
    fileType: type,
    wallet: wallet?.data,
  }
}

function daysOf(text: string | undefined): number {
  if (text === undefined) throw invalid('duration', 'is required')
  const days = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (days < 1 || days > MOST_DAYS) throw invalid('duration', `must be a number of days from 1 to ${MOST_DAYS}`)
  return days
}

function invalid(name: string, problem: string): S3Error {
  return new S3Error('InvalidArgument', { message: `${name} ${problem}.`, fields: { ArgumentName: name } })
}
