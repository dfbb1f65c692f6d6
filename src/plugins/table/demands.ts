import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../common/errors/s3-error.js'

/**
 * Headers that demand something that must not be ignored: encryption, locks, rights, tags, conditions of directory
 * buckets. An operation declares those that it supports; every other operation refuses them. Every other header of S3
 * is either read by all operations that can have it, or changes nothing.
 */
const DEMAND = new RegExp(
  `^x-(?:amz|cloud)-(?:${[
    'server-side-encryption.*',
    'copy-source-server-side-encryption.*',
    'object-lock-.*',
    'bucket-object-lock-.*',
    'bucket-namespace',
    'object-ownership',
    'website-redirect-location',
    'acl',
    'grant-.*',
    'tagging.*',
    'write-offset-bytes',
    'if-match-.*',
  ].join('|')})$`,
)

/**
 * Headers that are supported only as `x-amz-...`: only headers of the signature and the transfer also exist as
 * `x-cloud-...`.
 */
const AMZ_ALONE =
  /^x-cloud-(?:copy-source.*|meta-.*|metadata-directive|storage-class|(?:source-)?expected-bucket-owner|mp-object-size)$/

/** Values that demand only the default behaviour. */
const GRANTED: Readonly<Record<string, readonly string[]>> = {
  'x-amz-acl': ['private', 'bucket-owner-full-control'],
  'x-amz-bucket-object-lock-enabled': ['false'],
  'x-amz-bucket-namespace': ['global'],
}

export function isDemand(header: string): boolean {
  return DEMAND.test(header) || AMZ_ALONE.test(header)
}

/**
 * Throws NotImplemented, naming the header, for a demand that the operation does not support.
 * @param honoured lower-case names of supported headers
 */
export function refuseDemands(headers: IncomingHttpHeaders, honoured: readonly string[] = []): void {
  for (const name in headers) {
    if (!name.startsWith('x-') || !isDemand(name) || honoured.includes(name)) continue
    if (GRANTED[name]?.includes(String(headers[name]).toLowerCase())) continue
    throw new S3Error('NotImplemented', {
      message: `The header ${name} requires functionality that is not implemented.`,
      fields: { Header: name },
    })
  }
}
