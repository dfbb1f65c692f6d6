import { S3Error } from '../../../common/errors/s3-error.js'
import { canonicalPath, timingSafeEqualHex } from '../../../common/sigv4.js'
import type { Proof } from '../../api/identity.js'
import type { RequestHead } from '../../api/request.js'
import { basePathsFor, hexBytes, mustBeSigned, withoutCustomerKeys } from './checks.js'
import {
  isCoveredHeaderParameter,
  isCoveredParameter,
  refuseMixture,
  signature,
  stringToSign,
  type Version2Signature,
} from './version-2.js'

/** Headers by lower-case name, values of one character per byte. */
type CoveredHeaders = ReadonlyMap<string, string>

/**
 * Compares the signature in constant time with those that the key gives for the equivalent forms of the request. Each
 * is an HMAC over method, time, resource and the headers of S3, so that accepting any of them weakens nothing.
 * @param basePaths percent-encoded prefixes that an intermediary removed from the path; tried after the path as it came
 * @returns what the signature covers
 * @throws S3Error SignatureDoesNotMatch with the string to sign
 */
export function verifyVersion2(
  head: RequestHead,
  parsed: Version2Signature,
  secretAccessKey: string,
  basePaths: readonly string[],
): Proof {
  refuseMixture(head.query.entries.map(([name]) => name))
  refuseControls(head)
  const headers = coveredHeaders(head, parsed.presigned)
  const { 'content-md5': contentMd5 = '', 'content-type': contentType = '', ...amz } = Object.fromEntries(headers)
  const common = { method: head.method, contentMd5, contentType, date: parsed.date, headers: Object.entries(amz) }
  let first: string | undefined
  for (const resource of resources(head, basePaths)) {
    const toSign = stringToSign({ ...common, resource })
    if (timingSafeEqualHex(signature(secretAccessKey, toSign), parsed.signature))
      return { headers: ['date', ...headers.keys()], signature: parsed.signature }
    first ??= toSign
  }
  const shown = withoutCustomerKeys(first ?? '')
  throw new S3Error('SignatureDoesNotMatch', {
    fields: {
      AWSAccessKeyId: parsed.accessKeyId,
      StringToSign: Buffer.from(shown, 'latin1').toString(),
      SignatureProvided: parsed.signature,
      StringToSignBytes: hexBytes(shown),
    },
  })
}

/**
 * The string to sign separates its members by line feeds. With one inside a parameter, the holder of a URL could move a
 * member into another without changing the signed text. Headers cannot contain one.
 */
function refuseControls({ query }: RequestHead): void {
  for (const [name, value] of query.entries) {
    const covered = isCoveredHeaderParameter(name) || isCoveredParameter(name)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
    if (covered && /[\0-\x08\x0a-\x1f\x7f]/.test(name + value)) {
      throw new S3Error('InvalidArgument', {
        message: 'With signature version 2, signed parameters of the URL must not contain control characters.',
        fields: { ArgumentName: name },
      })
    }
  }
}

/**
 * The headers of S3 in either brand, Content-MD5 and Content-Type. A presigned URL may have them in its query.
 * @throws S3Error InvalidArgument if a header and a parameter of the same name differ
 */
function coveredHeaders({ rawHeaders, query }: RequestHead, presigned: boolean): CoveredHeaders {
  const covered = new Map<string, string>()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    if (!mustBeSigned(name) && name !== 'content-type' && name !== 'content-md5') continue
    append(covered, name, (rawHeaders[i + 1] as string).trim())
  }
  if (!presigned) return covered
  const hoisted = new Map<string, string>()
  for (const [name, value] of query.entries) {
    // Header values are latin-1 strings of UTF-8 bytes.
    if (isCoveredHeaderParameter(name))
      append(hoisted, name.toLowerCase(), Buffer.from(value).toString('latin1').trim())
  }
  for (const [name, value] of hoisted) {
    if ((covered.get(name) ?? value) !== value) {
      throw new S3Error('InvalidArgument', {
        message: `The parameter ${name} of the URL and the header have different values.`,
        fields: { ArgumentName: name },
      })
    }
    covered.set(name, value)
  }
  return covered
}

function append(headers: Map<string, string>, name: string, value: string): void {
  const before = headers.get(name)
  headers.set(name, before === undefined ? value : `${before},${value}`)
}

/** Returns each form once. Version 2 does not cover the host, so a bucket that the host names leads the signed path. */
function resources(head: RequestHead, basePaths: readonly string[]): ReadonlySet<string> {
  const { rawPath, hostBucket, resource } = head
  const bucket = hostBucket === undefined ? '' : `/${hostBucket}`
  const parameters = queries(head)
  const forms = new Set<string>()
  for (const base of ['', ...basePathsFor(head, basePaths)]) {
    for (const path of [rawPath, canonicalPath(rawPath)]) {
      const sent = bucket + base + path
      for (const query of parameters) forms.add(sent + query)
      // Clients sign a bucket with a final slash or without.
      if (resource !== 'bucket') continue
      const other = sent.endsWith('/') ? sent.slice(0, -1) : `${sent}/`
      for (const query of parameters) forms.add(other + query)
    }
  }
  return forms
}

/** The covered parameters by name: decoded, as the documentation has it, or as sent. */
function queries({ rawQuery, query }: RequestHead): readonly string[] {
  if (rawQuery === '') return ['']
  const raw = rawQuery.split('&').filter(Boolean)
  const pairs = query.entries
    .map(([name, value], i) => ({ name, value: Buffer.from(value).toString('latin1'), sent: raw[i] ?? '' }))
    .filter(({ name }) => isCoveredParameter(name))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  if (pairs.length === 0) return ['']
  const joined = (text: (pair: (typeof pairs)[number]) => string) => `?${pairs.map(text).join('&')}`
  return [
    joined(({ name, value }) => (value === '' ? name : `${name}=${value}`)),
    joined(({ name, value, sent }) => (sent.includes('=') ? `${name}=${value}` : name)),
    joined(({ sent }) => sent),
  ]
}
