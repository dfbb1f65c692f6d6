import type { IncomingHttpHeaders } from 'node:http'
import {
  checksumAlgorithms,
  checksumHeader,
  createChecksum,
  prepareChecksum,
} from '../../common/checksums/checksums.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Caller } from '../api/identity.js'
import type { RequestHead } from '../api/request.js'
import { hasControls, utf8Bytes } from './header-text.js'

/** Parameters of the signature, the transfer or the SDK, which are no input of the operation. */
const NOT_HEADERS =
  /^x-amz-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256|trailer|decoded-content-length|sdk-checksum-algorithm)$/

/** RFC 9110 section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

/** Further headers that presigners of signature version 2 move: it signs them by name. */
const CONTENT = /^content-(?:md5|type)$/

/**
 * Adds the headers that a presigner moved into the query to the headers of a presigned request. SDKs move x-amz-meta-*,
 * x-amz-acl and others, and S3 honours them. A header of the request, which is signed too, takes precedence. Throws
 * InvalidArgument for a parameter that no header can hold.
 */
export async function hoistedHeaders(
  head: RequestHead,
  { signatureVersion }: Pick<Caller, 'signatureVersion'>,
): Promise<IncomingHttpHeaders> {
  const hoisted = new Map<string, string>()
  for (const [name, value] of head.query.entries) {
    const lower = name.toLowerCase()
    if (!lower.startsWith('x-amz-') && !(signatureVersion === 'AWS' && CONTENT.test(lower))) continue
    if (NOT_HEADERS.test(lower) || (await isOfEmptyBody(lower, value))) continue
    const text = headerOf('parameter', lower, value)
    const before = hoisted.get(lower)
    hoisted.set(lower, before === undefined ? text : `${before}, ${text}`)
  }
  return { ...Object.fromEntries(hoisted), ...head.headers }
}

/**
 * Returns the value of the header that a text of another kind stands for, with one character for each byte of UTF-8.
 * Throws InvalidArgument for a name or value that no header can hold.
 * @param what is invalid: `field` or `parameter`
 * @param name in lower case
 */
export function headerOf(what: string, name: string, text: string): string {
  if (!hasControls(text) && TOKEN.test(name)) return utf8Bytes(text)
  throw new S3Error('InvalidArgument', {
    message: `The ${what} ${name} is invalid: a header cannot hold its name or value.`,
    fields: { ArgumentName: name },
  })
}

/**
 * True for the checksum of an empty body. SDKs presign it because they do not know the body, and it would make the
 * server refuse every other body: https://github.com/aws/aws-sdk-js-v3/issues/6994
 */
async function isOfEmptyBody(name: string, value: string): Promise<boolean> {
  const algorithm = checksumAlgorithms.find((known) => checksumHeader(known) === name)
  if (algorithm === undefined) return false
  await prepareChecksum(algorithm)
  return createChecksum(algorithm).digest() === value
}

/** Brands in the names of S3 headers and parameters: `x-amz-date` and `x-cloud-date` are equivalent. */
export const headerBrands = ['amz', 'cloud'] as const

/** Both names by suffix: a text that is made anew has to be found in the engine's table of names at each look-up. */
const NAMES = new Map<string, readonly string[]>()

interface BrandedHeader {
  /** Name of the header that was sent, lower-case. */
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
    // Only set-cookie has an array as its value.
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
