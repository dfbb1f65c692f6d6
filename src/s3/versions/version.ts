import type { Query } from '../../../common/query.js'
import { readVersionId } from '../../access/values/query-values.js'
import type { Context } from '../../api/context.js'
import type { ReplyHeaders } from '../../api/request.js'
import { notLocked, notVersioned } from '../../gateway/objects/versions.js'
import { refuseVersion } from '../../http/read-request.js'

type Of = Pick<Context, 'gateway'>

export async function hasVersions({ gateway }: Of): Promise<boolean> {
  return (await gateway.features()).versions
}

/**
 * Throws NotImplemented, with the name of what asks, on a gateway that keeps one version of each object.
 * @param name of an operation
 */
export async function requireVersions(context: Of, name: string): Promise<void> {
  if (!(await hasVersions(context))) throw notVersioned(name)
}

/**
 * Throws NotImplemented on a gateway that locks no objects: what is not protected is never said to be.
 * @param name of an operation or a header
 */
export async function requireLocks({ gateway }: Of, name: string): Promise<void> {
  if (!(await gateway.features()).locks) throw notLocked(name)
}

/**
 * Returns the version that a query names; undefined for the current one, which is the only one of a gateway without
 * versions. Throws InvalidArgument.
 */
export async function refOf(query: Query, context: Of): Promise<{ readonly id: string } | undefined> {
  const id = query.get('versionId')
  if (id === undefined) return undefined
  if (!(await hasVersions(context))) {
    refuseVersion(query)
    return undefined
  }
  return { id: readVersionId(id) }
}

/** The id of a version for the headers of an answer; nothing in a bucket that was never versioned. */
export function versionHeaders({ versionId }: { readonly versionId?: string | undefined }): ReplyHeaders {
  return { 'x-amz-version-id': versionId }
}
