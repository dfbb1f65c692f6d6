import { unless } from '../../common/errors/s3-error.js'
import type { ActionResource, Authorization, Authorize } from '../api/access.js'
import type { Caller } from '../api/identity.js'
import type { ActionName, RowAction } from '../api/operation.js'
import type { Plugin } from '../api/plugin.js'

const NAME = /^[a-z][a-z0-9-]{0,31}:[A-Za-z0-9]{1,100}$/

export function actionNames(action: RowAction, plugin: string): readonly ActionName[] {
  if (action === 'none') return []
  if (typeof action === 'string') return [action]
  if ('each' in action) return [action.each]
  if ('call' in action) return [`${plugin}:${action.call}`]
  return action
}

/** A value in plain JavaScript may be anything. */
export function isRowAction(action: unknown): action is RowAction {
  if (action === 'none') return true
  if (typeof action === 'string') return NAME.test(action)
  if (Array.isArray(action))
    return action.length > 0 && action.every((one) => typeof one === 'string' && NAME.test(one))
  if (typeof action !== 'object' || action === null) return false
  const { each, call } = action as Readonly<Record<string, unknown>>
  return typeof (each ?? call) === 'string' && Object.keys(action).length === 1
}

type RequireAction = (name: string, place: ActionResource) => Promise<void>

/** The action that a caller must hold for metadata that it stores to take full effect, by the name of the metadata. */
export type MetadataActions = ReadonlyMap<string, string>

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
    const authorization = authorizationOf(caller)
    const held: [string, Authorization][] = []
    for (const [name, action] of actions) {
      if (!Object.hasOwn(metadata, name) || !(await holds(requireAction, action, place))) continue
      if (before && before.authorized?.[name]?.account !== authorization.account) continue
      held.push([name, authorization])
    }
    return held.length === 0 ? undefined : Object.fromEntries(held)
  }
}

/** Returns the access key of the gateway account that pays for a caller; '' for the server's own account. */
function payingAccount(caller: Caller | undefined): string {
  return caller?.identity.account?.accessKey ?? ''
}

function authorizationOf(caller: Caller): Authorization {
  return { accessKeyId: caller.identity.accessKeyId, account: payingAccount(caller) }
}

/** Rejects if the rules cannot be read: the write fails, rather than being stored as one without the right. */
function holds(requireAction: RequireAction, action: string, place: ActionResource): Promise<boolean> {
  return unless(
    'AccessDenied',
    requireAction(action, place).then(() => true),
    false,
  )
}
