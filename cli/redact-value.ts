import { redact } from '../common/log.js'

const NAMES = '(?:secret|passw|pwd|token|credential|signature|api_?key|access_?key)'

/** Parameters and members whose names say that their values are secret. */
const SECRET = new RegExp(`((?:^|[?&"'\\s])[\\w.-]*${NAMES}[\\w.-]*"?\\s*[=:]\\s*"?)[^\\s&#;,"']+`, 'gi')
const SECRET_PARAMETER = new RegExp(`([?&][^=&\\s"']*${NAMES}[^=&\\s"']*=)[^\\s&"']+`, 'gi')

/**
 * Removes the secrets of a text that a message quotes whole, such as the value of an option: what stands before the
 * last `@` of an address, however malformed it is, and secret parameters. It removes too much rather than too little.
 */
export function redactValue(text: string): string {
  const safe = redact(text).replace(SECRET, '$1REDACTED')
  const at = safe.lastIndexOf('@')
  if (!safe.slice(0, Math.max(at, 0)).includes(':')) return safe
  const start = /^["'\s[{]*(?:[\w-]+=)?(?:[a-z][a-z0-9+.-]*:)?\/*/i.exec(safe)?.[0] ?? ''
  return `${start}REDACTED${safe.slice(at)}`
}

/** Removes the secrets of all addresses in a message: words with a scheme, and a colon before an `@`. */
export function redactMessage(message: string): string {
  return redact(message)
    .replace(/([a-z][a-z0-9+.-]*:\/{0,3})[^\s"'<>@]*:[^\s"'<>]*@/gi, '$1REDACTED@')
    .replace(SECRET_PARAMETER, '$1REDACTED')
}
