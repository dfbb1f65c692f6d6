import type { ReplyHeaders } from '../response/reply.js'
import type { CorsRule } from './cors-rule.js'

/** What a browser asks, in a preflight or by the request itself. */
export interface CorsQuestion {
  readonly origin: string
  readonly method: string
  /** Names in any case; of a preflight only. */
  readonly headers?: readonly string[]
}

/** The answer depends on these, so that no cache may give one origin's to another. */
export const CORS_VARY = 'Origin, Access-Control-Request-Headers, Access-Control-Request-Method'

/** The headers by the first rule that fits; undefined when none does. */
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
    // Fetch standard: a browser takes no credentials along with `*`.
    'access-control-allow-credentials': everybody ? undefined : 'true',
    vary: CORS_VARY,
  }
}

function allowsHeader(rule: CorsRule, name: string): boolean {
  return rule.allowedHeaders.some((allowed) => fits(allowed.toLowerCase(), name.toLowerCase()))
}

/** One `*` in the pattern stands for anything, also nothing. */
function fits(pattern: string, text: string): boolean {
  const star = pattern.indexOf('*')
  if (star < 0) return pattern === text
  const before = pattern.slice(0, star)
  const after = pattern.slice(star + 1)
  return text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after)
}
