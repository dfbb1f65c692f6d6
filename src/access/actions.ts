import { denied } from './restrict-gateway.js'

/** Throws AccessDenied unless one of the actions equals `name`, or is a prefix of it followed by `*`. */
export function requireAction(actions: readonly string[], name: string): void {
  const allowed = actions.some((action) =>
    action.endsWith('*') ? name.startsWith(action.slice(0, -1)) : name === action,
  )
  if (!allowed) throw denied(`make the call ${name}: the key needs this action`)
}
