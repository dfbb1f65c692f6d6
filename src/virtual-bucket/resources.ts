import type { Context } from '../context.js'
import type { AnyOperation } from '../registry/plugin.js'
import type { Row } from '../registry/table.js'

const ROOT = '/-/'

/** What can be read below `/-/`, as the virtual bucket `-` shows it. */
export interface Readable {
  /** Key in the virtual bucket, with `{Name}` for what differs: `jobs/v1/{JobId}`. */
  readonly template: string
  /** The part of it before the first `{`. */
  readonly head: string
  readonly operation: AnyOperation
  /** Whose operation it is. */
  readonly plugin: string
}

/** One that is there. */
export interface Resource {
  readonly key: string
  readonly operation: AnyOperation
  readonly plugin: string
  readonly params: Readonly<Record<string, string>>
}

/** Every GET below `/-/` whose names can be told. */
export function readables(rows: readonly Row[]): Readable[] {
  return rows.flatMap(({ operation, plugin }) => {
    const { method, resource, path = '/', query } = operation.on
    if (method !== 'GET' || resource !== 'service' || !path.startsWith(ROOT) || path === ROOT || query) return []
    const template = path.slice(ROOT.length)
    if (template.includes('{') && !operation.call?.members) return []
    return [{ template, head: template.split('{')[0] as string, operation, plugin }]
  })
}

/** Those whose key begins with `prefix`, as the caller sees them; in no order. */
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

/** False for a name that clients of S3 could not ask for by a key: they send its slashes as they are, and some resolve dots. */
function isSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/')
}
