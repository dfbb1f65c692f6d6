import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'

/** Words that stand in the names of S3's own headers and parameters: `x-amz-date` and `x-cloud-date` mean the same. */
export const headerBrands = ['amz', 'cloud'] as const

export interface BrandedHeader {
  /** As sent, lower-case. */
  readonly name: string
  readonly value: string
}

/**
 * The header `x-amz-<suffix>` or `x-cloud-<suffix>`, whichever was sent.
 * @throws S3Error InvalidArgument if both were and they differ
 */
export function brandedHeader(headers: IncomingHttpHeaders, suffix: string): BrandedHeader | undefined {
  let found: BrandedHeader | undefined
  for (const brand of headerBrands) {
    const name = `x-${brand}-${suffix}`
    const value = headers[name]
    // Node makes an array of set-cookie only.
    if (typeof value !== 'string') continue
    if (found !== undefined && found.value !== value) {
      throw new S3Error('InvalidArgument', {
        message: `The headers ${found.name} and ${name} say different things: send one of them.`,
        fields: { ArgumentName: name },
      })
    }
    found ??= { name, value }
  }
  return found
}
