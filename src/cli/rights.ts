import type { Right } from '../auth/caller.js'

/** Reads `read:photos/2024/`. Undefined when it has another form; what bucket and prefix may be, the schema of identities says. */
export function parseRight(text: string): Right | undefined {
  const [, access, bucket = '', prefix] = /^(read|write|readwrite):([^/]+)(?:\/(.*))?$/s.exec(text) ?? []
  if (access === undefined) return undefined
  return { bucket, ...(prefix ? { prefix } : {}), access: access as Right['access'] }
}

/** As parseRight reads them. */
export function formatRights(rights: readonly Right[] | undefined): string {
  if (rights === undefined) return 'all that the account may'
  if (rights.length === 0) return 'none'
  return rights
    .map(({ bucket, prefix, access }) => `${access}:${bucket}${prefix === undefined ? '' : `/${prefix}`}`)
    .join(' ')
}
