/** Name of an action in policies: `s3:GetObject`, `deal:CreateObjectDeal`. */
export type ActionName = `${string}:${string}`

/**
 * What an operation asks the one decision (access/door). A server does not start with an operation that does not
 * declare it.
 */
export type RowAction =
  /** The actions on the resource of the request, each decided before the body can be read. */
  | ActionName
  | readonly ActionName[]
  /** The body names the keys. The operation decides this action on each of them with `Context.decide`. */
  | { readonly each: ActionName }
  /** The action `<plugin>:<name>` of an extension call. */
  | { readonly call: string }
  /** Nothing to decide: the operation neither returns nor changes data of anyone. */
  | 'none'

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
