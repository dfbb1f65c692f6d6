import { S3Error } from '../../common/errors/s3-error.js'
import type { StoredObject } from '../../objects/store.js'
import { requiredNumber } from '../../request/numbers.js'
import type { S3Request } from '../../request/s3-request.js'
import type { ReplyHeaders } from '../../response/reply.js'

export interface LocatedPart {
  /** From 1. */
  readonly number: number
  readonly range: { readonly first: number; readonly last: number } | undefined
  /** Undefined for an object that was not uploaded in parts, as S3 does not send it then. */
  readonly count: number | undefined
}

/**
 * Returns the location of the part `partNumber`; undefined without that parameter. Throws InvalidPartNumber,
 * InvalidArgument.
 */
export function locatePart(request: S3Request<'object'>, object: StoredObject): LocatedPart | undefined {
  const value = request.query.get('partNumber')
  if (value === undefined) return undefined
  const wanted = requiredNumber('partNumber', value, { min: 1, max: 10_000 })
  const runs = object.partSizes ?? [[object.size, 1] as const]
  let first = 0
  let number = 1
  for (const [bytes, count] of runs) {
    if (wanted < number + count) {
      first += (wanted - number) * bytes
      const parts = object.partSizes?.reduce((sum, [, n]) => sum + n, 0)
      return { number: wanted, range: bytes === 0 ? undefined : { first, last: first + bytes - 1 }, count: parts }
    }
    first += bytes * count
    number += count
  }
  throw new S3Error('InvalidPartNumber', { fields: { ActualPartCount: number - 1, PartNumberRequested: wanted } })
}

export function partHeaders(part: LocatedPart | undefined, object: StoredObject): ReplyHeaders {
  if (part?.count === undefined || object.partSizes === undefined) return {}
  return { 'x-amz-mp-parts-count': part.count }
}
