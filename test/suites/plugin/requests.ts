import type { AnyOperation } from '../../../src/api/operation.js'
import type { Asked } from './client.js'

export const BUCKET = 'plugin-suite'
export const KEY = 'an/object'

/** A request that the operation declares to answer. */
export function requestFor({ on }: AnyOperation, more: { query?: string; body?: Buffer } = {}): Asked {
  const { method, resource, path = '/', query = [], header } = on
  const place = { service: filled(path), bucket: `/${BUCKET}`, object: `/${BUCKET}/${KEY}` }[resource]
  const parameters = [...query.map(parameter), ...(more.query ? [more.query] : [])].sort()
  return {
    method,
    target: parameters.length > 0 ? `${place}?${parameters.join('&')}` : place,
    headers: {
      ...(header !== undefined && { [header]: `/${BUCKET}/${KEY}` }),
      // What becomes a job is not waited for.
      prefer: 'wait=0',
    },
    ...(more.body && { body: more.body }),
  }
}

function filled(path: string): string {
  return path.replace(/\{[^}]*\}/g, 'suite')
}

function parameter(name: string): string {
  if (name.includes('=')) return name
  return name.startsWith('x-') ? `${name}=` : `${name}=1`
}

export function mayBeUnsigned({ access = 'signed' }: AnyOperation): boolean {
  return access === 'anonymous' || access === 'public'
}
