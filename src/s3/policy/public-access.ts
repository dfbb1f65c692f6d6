import { S3Error } from '../../common/errors/s3-error.js'
import type { HiddenAccess, PolicyEntry } from '../../gateway/gateway.js'
import type { Context } from '../../server/context.js'

/** The rights of anonymous callers in a bucket. */
export interface PublicAccess {
  /** Rules that the gateway lists, in UTF-8 byte order of the prefix. */
  readonly entries: readonly PolicyEntry[]
  /** Further rights, as far as probing has shown. */
  readonly hidden: readonly HiddenAccess[]
}

/** Reads the rules from the gateway, so that rules of other programs count as well. Throws S3Error. */
export async function readPublicAccess({ gateway }: Pick<Context, 'gateway'>, bucket: string): Promise<PublicAccess> {
  const entries = await gateway.listPolicies(bucket)
  return { entries, hidden: await gateway.hiddenAccess(bucket, entries) }
}

/** The same, limited to one object. */
export async function readObjectAccess(
  { gateway }: Pick<Context, 'gateway'>,
  bucket: string,
  key: string,
): Promise<PublicAccess> {
  const entries = await gateway.listPolicies(bucket)
  const folder = key.slice(0, key.lastIndexOf('/', key.length - 2) + 1)
  return { entries, hidden: await gateway.hiddenAccess(bucket, entries, [folder]) }
}

export function isPublic({ entries, hidden }: PublicAccess): boolean {
  return entries.length > 0 || hidden.length > 0
}

/** Formats rights for messages: `readonly on "a/*"`. */
export function describeAccess({ entries, hidden }: PublicAccess): string {
  const rules = entries.map(({ prefix, policy }) => `${policy} on "${prefix}*"`)
  const others = hidden.map(({ prefix, action }) =>
    action === 'get' ? `reading objects below "${prefix}"` : `listing or writing "${prefix}"`,
  )
  return [...rules, ...others].join(', ')
}

/** Returns the error for rights that the gateway still grants after their removal. */
export function notRemovable(left: PublicAccess): S3Error {
  return new S3Error('NotImplemented', {
    message: `The bucket is still public: the gateway keeps rules for everybody that dealgate cannot remove: ${describeAccess(left)}. Remove them on the gateway itself.`,
  })
}
