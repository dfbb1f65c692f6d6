import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../errors/s3-error.js'

/**
 * Headers that ask for something particular, which would be lost if an operation passed over them: encryption, locks, rights, tags, conditions of directory buckets.
 * An operation names those that it honours; on any other they are refused. All other headers of S3 are read by every operation that can have them, or change nothing.
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

/** Honoured as `x-amz-...` alone: only headers of the signature and the transfer have the other brand too. */
const AMZ_ALONE =
  /^x-cloud-(?:copy-source.*|meta-.*|metadata-directive|storage-class|(?:source-)?expected-bucket-owner|mp-object-size)$/

/** Values that ask for what is so anyway. */
const GRANTED: Readonly<Record<string, readonly string[]>> = {
  'x-amz-acl': ['private', 'bucket-owner-full-control'],
  'x-amz-bucket-object-lock-enabled': ['false'],
  'x-amz-bucket-namespace': ['global'],
}

export function isDemand(header: string): boolean {
  return DEMAND.test(header) || AMZ_ALONE.test(header)
}

/**
 * Throws NotImplemented, naming the header, for a demand that is not honoured.
 * @param honoured lower-case names
 */
export function refuseDemands(headers: IncomingHttpHeaders, honoured: readonly string[] = []): void {
  for (const name in headers) {
    if (!name.startsWith('x-') || !isDemand(name) || honoured.includes(name)) continue
    if (GRANTED[name]?.includes(String(headers[name]).toLowerCase())) continue
    throw new S3Error('NotImplemented', {
      message: `The header ${name} asks for functionality that is not implemented here.`,
      fields: { Header: name },
    })
  }
}
