import type { ActionName, RowAction } from '../../api/operation.js'

const NAME = /^[a-z][a-z0-9-]{0,31}:[A-Za-z0-9]{1,100}$/

/** Returns the names of the actions of an operation of this plugin. */
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
