import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'

/** Brands in the names of S3 headers and parameters: `x-amz-date` and `x-cloud-date` are equivalent. */
export const headerBrands = ['amz', 'cloud'] as const

/** Both names by suffix: a text that is made anew has to be found in the engine's table of names at each look-up. */
const NAMES = new Map<string, readonly string[]>()

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
  for (const name of namesOf(suffix)) {
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

/** @param suffix of a header that this server knows */
function namesOf(suffix: string): readonly string[] {
  let names = NAMES.get(suffix)
  if (names === undefined) {
    names = headerBrands.map((brand) => `x-${brand}-${suffix}`)
    NAMES.set(suffix, names)
  }
  return names
}
