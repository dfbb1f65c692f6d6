import type { Place } from '../../access/door.js'
import type { Caller } from '../../auth/caller.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { Authorized, Authorizer } from '../../state/state.js'
import type { Plugin } from './plugin.js'

/**
 * Determines which metadata of an object may authorize payments. The result is stored with the object, because it
 * cannot be found out later whether the caller held the right when the object was stored.
 * @param metadata metadata of the object to store, by lower-case name without prefix
 * @param place the object to store
 * @param before for metadata that the caller copies: the result of the source. A copy adds no right
 * @returns undefined if there is nothing to store
 */
export type Authorize = (
  metadata: Readonly<Record<string, string>>,
  place: Place,
  before?: { readonly authorized?: Authorized | undefined },
) => Promise<Authorized | undefined>

type RequireAction = (name: string, place: Place) => Promise<void>

/** The action that a caller must hold for metadata that it stores to take full effect, by the name of the metadata. */
export type MetadataActions = ReadonlyMap<string, string>

/** Merges the metadata actions of all plugins. */
export function metadataActionsOf(plugins: readonly Pick<Plugin, 'metadataActions'>[]): MetadataActions {
  return new Map(plugins.flatMap((plugin) => Object.entries(plugin.metadataActions ?? {})))
}

/** Returns the decision for one caller. An anonymous caller holds no action. */
export function authorizing(
  actions: MetadataActions,
  caller: Caller | undefined,
  requireAction: RequireAction,
): Authorize {
  return async (metadata, place, before) => {
    if (!caller || actions.size === 0) return undefined
    const authorizer = authorizerOf(caller)
    const held: [string, Authorizer][] = []
    for (const [name, action] of actions) {
      if (!Object.hasOwn(metadata, name) || !(await holds(requireAction, action, place))) continue
      if (before && before.authorized?.[name]?.account !== authorizer.account) continue
      held.push([name, authorizer])
    }
    return held.length === 0 ? undefined : Object.fromEntries(held)
  }
}

/** Returns the access key of the gateway account that pays for a caller; '' for the server's own account. */
export function payingAccount(caller: Caller | undefined): string {
  return caller?.identity.account?.accessKey ?? ''
}

function authorizerOf(caller: Caller): Authorizer {
  return { accessKeyId: caller.identity.accessKeyId, account: payingAccount(caller) }
}

/** Rejects if the rules cannot be read: the write fails, rather than being stored as one without the right. */
async function holds(requireAction: RequireAction, action: string, place: Place): Promise<boolean> {
  try {
    await requireAction(action, place)
    return true
  } catch (error) {
    if (error instanceof S3Error && error.code === 'AccessDenied') return false
    throw error
  }
}
