import type { AnyOperation } from '../../plugins/forms/plugin.js'
import type { Row } from '../../plugins/table/table.js'
import type { Context } from '../../server/context.js'

const ROOT = '/-/'

/** A readable path below `/-/`, as the virtual bucket `-` shows it. */
export interface Readable {
  /** Key in the virtual bucket, with `{Name}` for variable parts: `jobs/v1/{JobId}`. */
  readonly template: string
  /** The part of the template before the first `{`. */
  readonly head: string
  readonly operation: AnyOperation
  /** Name of the plugin of the operation. */
  readonly plugin: string
}

/** An existing resource. */
export interface Resource {
  readonly key: string
  readonly operation: AnyOperation
  readonly plugin: string
  readonly params: Readonly<Record<string, string>>
}

/** Returns every GET below `/-/` whose names can be enumerated. */
export function readables(rows: readonly Row[]): Readable[] {
  return rows.flatMap(({ operation, plugin }) => {
    const { method, resource, path = '/', query } = operation.on
    if (method !== 'GET' || resource !== 'service' || !path.startsWith(ROOT) || path === ROOT || query) return []
    const template = path.slice(ROOT.length)
    if (template.includes('{') && !operation.call?.members) return []
    return [{ template, head: template.split('{')[0] as string, operation, plugin }]
  })
}

/** Yields the resources with the prefix that the caller may see, in no particular order. */
export async function* resourcesBelow(
  readable: Readable,
  prefix: string,
  context: Context,
): AsyncGenerator<Resource, void> {
  const { template, head, operation, plugin } = readable
  if (!head.startsWith(prefix) && !prefix.startsWith(head)) return
  if (!template.includes('{')) {
    if (template.startsWith(prefix)) yield { key: template, operation, plugin, params: {} }
    return
  }
  for await (const params of operation.call?.members?.(context) ?? []) {
    if (!Object.values(params).every(isSegment)) continue
    const key = template.replace(/\{([^}]+)\}/g, (_, name: string) => params[name] ?? '')
    if (key.startsWith(prefix)) yield { key, operation, plugin, params }
  }
}

/**
 * Returns false for a name that S3 clients cannot send as part of a key: they do not encode slashes, and some resolve
 * dots.
 */
function isSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/')
}
