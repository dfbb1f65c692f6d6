import type { HeaderList } from '../../http/errors.js'
import type { GatewayContext } from '../context.js'
import type { GatewayExchange } from '../exchange.js'
import type { ObjectRow } from '../store/objects.js'
import type { VersionRef } from '../store/version-reads.js'
import { shownId } from '../store/versions.js'

/**
 * The version that the client asks for, with x-cloud-version-id or, by the generation of its body, with
 * x-cloud-of-generation.
 */
export function readVersionRef({ request: { headers }, context: { names } }: GatewayExchange): VersionRef | undefined {
  const id = headers[`${names.header}version-id`]
  if (typeof id === 'string') return { id }
  const generation = headers[`${names.header}of-generation`]
  return typeof generation === 'string' ? { generation } : undefined
}

/** What tells the version of an object in a bucket that has versions. */
export function versionHeaders({ names }: Pick<GatewayContext, 'names'>, row: ObjectRow): HeaderList {
  return [`${names.header}version-id`, shownId(row)]
}
