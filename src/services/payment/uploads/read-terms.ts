import { PaymentError } from '../errors.js'
import type { Fields } from '../http/fields.js'

/** Days for which storage providers of the network accept deals. */
const LEAST_DAYS = 180
const MOST_DAYS = 540

/** How an upload is to be stored. */
export interface UploadTerms {
  /** Days. */
  readonly duration: number
  readonly fileType: 0 | 1
}

/** Reads the texts of an upload. Throws PaymentError. */
export function readTerms(fields: Fields): UploadTerms {
  const text = fields.required('duration')
  if (!/^-?\d{1,9}$/.test(text)) throw new PaymentError('type', 'duration must be a whole number of days')
  const duration = Number(text)
  if (duration < LEAST_DAYS || duration > MOST_DAYS) {
    throw new PaymentError('value', `duration must be from ${LEAST_DAYS} to ${MOST_DAYS} days`)
  }
  const type = fields.get('file_type') ?? '0'
  if (type !== '0' && type !== '1') throw new PaymentError('value', 'file_type must be 0 or 1')
  return { duration, fileType: type === '1' ? 1 : 0 }
}
