import type { IncomingHttpHeaders } from 'node:http'
import { type ChecksumAlgorithm, checksumAlgorithms, parseChecksumAlgorithm } from '../../common/checksums/checksums.js'
import { S3Error } from '../../common/errors/s3-error.js'

export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(',') : value
}

/** Reads the checksum algorithm in a header; undefined if absent. Throws InvalidRequest for an unknown one. */
export function checksumAlgorithmHeader(headers: IncomingHttpHeaders, name: string): ChecksumAlgorithm | undefined {
  const value = headerText(headers, name)
  if (value === undefined || value === '') return undefined
  const algorithm = parseChecksumAlgorithm(value)
  if (algorithm) return algorithm
  throw new S3Error('InvalidRequest', {
    message: `${name} is ${value}: it must be one of ${checksumAlgorithms.join(', ')}.`,
  })
}
