import type { Identity, Right } from '../../auth/caller.js'

/** Parses `read:photos/2024/`; undefined for another form. The schema of identities validates bucket and prefix. */
export function parseRight(text: string): Right | undefined {
  const [, access, bucket = '', prefix] = /^(read|write|readwrite):([^/]+)(?:\/(.*))?$/s.exec(text) ?? []
  if (access === undefined) return undefined
  return { bucket, ...(prefix ? { prefix } : {}), access: access as Right['access'] }
}

/** Formats rights as parseRight parses them, followed by the actions. */
export function formatRights({ rights, actions = [] }: Pick<Identity, 'rights' | 'actions'>): string {
  if (rights === undefined) return 'all that the account may'
  const texts = [
    ...rights.map(({ bucket, prefix, access }) => `${access}:${bucket}${prefix === undefined ? '' : `/${prefix}`}`),
    ...actions.map((action) => `allow:${action}`),
  ]
  return texts.length === 0 ? 'none' : texts.join(' ')
}
