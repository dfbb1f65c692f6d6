import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'

/** Brands in the names of S3 headers and parameters: `x-amz-date` and `x-cloud-date` are equivalent. */
export const headerBrands = ['amz', 'cloud'] as const

const PREFIXES = headerBrands.map((brand) => `x-${brand}-`)

export interface BrandedHeader {
  /** As sent, lower-case. */
  readonly name: string
  readonly value: string
}

/**
 * Returns the header `x-amz-<suffix>` or `x-cloud-<suffix>`.
 * @throws S3Error InvalidArgument if the request has both with different values
 */
export function brandedHeader(headers: IncomingHttpHeaders, suffix: string): BrandedHeader | undefined {
  let found: BrandedHeader | undefined
  for (const prefix of PREFIXES) {
    const name = prefix + suffix
    const value = headers[name]
    // Only set-cookie has an array.
    if (typeof value !== 'string') continue
    if (found !== undefined && found.value !== value) {
      throw new S3Error('InvalidArgument', {
        message: `The headers ${found.name} and ${name} have different values: send one of them.`,
        fields: { ArgumentName: name },
      })
    }
    found ??= { name, value }
  }
  return found
}
