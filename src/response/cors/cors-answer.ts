import type { ReplyHeaders } from '../reply.js'
import type { CorsRule } from './cors-rule.js'

/** The parameters of a preflight, or of a cross-origin request itself. */
export interface CorsQuestion {
  readonly origin: string
  readonly method: string
  /** Requested header names in any case; preflight only. */
  readonly headers?: readonly string[]
}

/** Request headers that determine the response, so that caches do not reuse it for other origins. */
export const CORS_VARY = 'Origin, Access-Control-Request-Headers, Access-Control-Request-Method'

/** Returns the headers of the first matching rule, or undefined without a match. */
export function corsAnswer(rules: readonly CorsRule[], question: CorsQuestion): ReplyHeaders | undefined {
  for (const rule of rules) {
    const pattern = rule.allowedOrigins.find((allowed) => fits(allowed, question.origin))
    if (pattern === undefined || !rule.allowedMethods.includes(question.method)) continue
    if (!(question.headers ?? []).every((name) => allowsHeader(rule, name))) continue
    return headersOf(rule, pattern, question)
  }
  return undefined
}

function headersOf(rule: CorsRule, pattern: string, { origin, headers }: CorsQuestion): ReplyHeaders {
  const everybody = pattern === '*'
  return {
    'access-control-allow-origin': everybody ? '*' : origin,
    'access-control-allow-methods': rule.allowedMethods.join(', '),
    'access-control-allow-headers': headers?.length ? headers.join(', ').toLowerCase() : undefined,
    'access-control-expose-headers': rule.exposeHeaders.length ? rule.exposeHeaders.join(', ') : undefined,
    'access-control-max-age': rule.maxAgeSeconds,
    // Fetch standard: browsers refuse credentials with `*`.
    'access-control-allow-credentials': everybody ? undefined : 'true',
    vary: CORS_VARY,
  }
}

function allowsHeader(rule: CorsRule, name: string): boolean {
  return rule.allowedHeaders.some((allowed) => fits(allowed.toLowerCase(), name.toLowerCase()))
}

/** A `*` in the pattern matches any text, including none. */
function fits(pattern: string, text: string): boolean {
  const star = pattern.indexOf('*')
  if (star < 0) return pattern === text
  const before = pattern.slice(0, star)
  const after = pattern.slice(star + 1)
  return text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after)
}
