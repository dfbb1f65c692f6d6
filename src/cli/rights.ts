import type { Identity, Right } from '../auth/caller.js'

/** Reads `read:photos/2024/`. Undefined when it has another form; what bucket and prefix may be, the schema of identities says. */
export function parseRight(text: string): Right | undefined {
  const [, access, bucket = '', prefix] = /^(read|write|readwrite):([^/]+)(?:\/(.*))?$/s.exec(text) ?? []
  if (access === undefined) return undefined
  return { bucket, ...(prefix ? { prefix } : {}), access: access as Right['access'] }
}

/** As parseRight reads them, and after them the actions. */
export function formatRights({ rights, actions = [] }: Pick<Identity, 'rights' | 'actions'>): string {
  if (rights === undefined) return 'all that the account may'
  const texts = [
    ...rights.map(({ bucket, prefix, access }) => `${access}:${bucket}${prefix === undefined ? '' : `/${prefix}`}`),
    ...actions.map((action) => `allow:${action}`),
  ]
  return texts.length === 0 ? 'none' : texts.join(' ')
}
