import { S3Error } from '../../common/errors/s3-error.js'
import { decodePath } from './decode-path.js'

/**
 * Checks path prefixes that clients sign and a reverse proxy removes. A signature over `/storage/photos/a` must be
 * valid for one resource only: with the prefix `/storage` for the object `a` of the bucket `photos`, and therefore
 * never for the object `photos/a` of a bucket `storage` (see refuseReserved).
 * @param basePaths percent-encoded
 * @returns the decoded prefixes
 * @throws TypeError for a prefix of another one or of the service's own paths: signatures below it would be ambiguous
 */
export function checkedBasePaths(basePaths: readonly string[]): readonly string[] {
  const plain = basePaths.map((path) => path.split('/').map(decodePath).join('/'))
  for (const [at, path] of plain.entries()) {
    if (firstSegment(path) === '-')
      throw new TypeError(`the signed base path ${basePaths[at]} is one of this server's own`)
    const outer = plain.findIndex((other) => path.startsWith(`${other}/`))
    if (outer >= 0) {
      throw new TypeError(
        `the signed base path ${basePaths[outer]} begins another one, ${basePaths[at]}: a signature would have two meanings`,
      )
    }
  }
  return plain
}

/**
 * Throws InvalidBucketName for a bucket whose name equals the first segment of a signed base path. Applies to every
 * style of addressing, because a signature of version 2 does not cover the style.
 * @param basePaths decoded, from `checkedBasePaths`
 * @param mount the prefix at which the handler is mounted, '' for none
 */
export function refuseReserved(bucket: string, basePaths: readonly string[], mount: string): void {
  const named = (path: string) => firstSegment(path) === bucket
  const reserved = basePaths.some(
    (path) => named(path) || (mount !== '' && path.startsWith(`${mount}/`) && named(path.slice(mount.length))),
  )
  if (!reserved) return
  throw new S3Error('InvalidBucketName', {
    message: 'This name is reserved: signatures may cover a path prefix of the same name. Choose another bucket name.',
    fields: { BucketName: bucket },
  })
}

function firstSegment(path: string): string | undefined {
  return path.split('/')[1]
}
