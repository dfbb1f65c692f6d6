import { denied } from './restrict-gateway.js'

/** Throws AccessDenied unless one of the actions is this one, or begins it with `*` behind. */
export function requireAction(actions: readonly string[], name: string): void {
  const allowed = actions.some((action) =>
    action.endsWith('*') ? name.startsWith(action.slice(0, -1)) : name === action,
  )
  if (!allowed) throw denied(`make the call ${name}: it needs that action`)
}
