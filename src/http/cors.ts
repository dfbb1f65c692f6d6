import { S3Error } from '../../common/errors/s3-error.js'
import type { Logger } from '../../common/log.js'
import { document, element, parseXml, requireChildren, within, type XmlNode } from '../../common/xml.js'
import type { Reply, ReplyHeaders, RequestHead } from '../api/request.js'
import type { BucketSettings } from '../api/settings.js'
import type { RequestOutline } from './read-request.js'

/**
 * Maximum size of a document, bytes, and number of its rules.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html
 */
export const MAX_CORS_BYTES = 64 * 1024
const MAX_RULES = 100
const MAX_ID = 255

const KNOWN = ['ID', 'AllowedMethod', 'AllowedOrigin', 'AllowedHeader', 'ExposeHeader', 'MaxAgeSeconds']

/** RFC 9110 section 5.6.2. Responses contain the exposed names in a header, so they must be valid tokens. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Parses a `<CORSConfiguration>`. Throws S3Error MalformedXML, InvalidRequest. */
export async function readCors(bytes: Buffer): Promise<CorsRule[]> {
  const root = await parseXml(bytes, 'CORSConfiguration')
  requireChildren(root, 'CORSConfiguration', { many: ['CORSRule'] })
  const rules = root.children.get('CORSRule') ?? []
  if (rules.length === 0) throw new S3Error('MalformedXML', { message: 'A CORSConfiguration needs a CORSRule.' })
  if (rules.length > MAX_RULES) {
    throw invalid(`The number of CORS rules should not exceed allowed limit of ${MAX_RULES} rules.`)
  }
  return rules.map((rule) => within(rule, readRule))
}

function readRule(rule: XmlNode): CorsRule {
  const texts = (name: string) => (rule.children.get(name) ?? []).map(({ text }) => text.trim())
  requireChildren(rule, 'CORSRule', { many: KNOWN })
  const read: CorsRule = {
    ...optional('id', readId(texts('ID'))),
    allowedMethods: texts('AllowedMethod'),
    allowedOrigins: texts('AllowedOrigin'),
    allowedHeaders: texts('AllowedHeader'),
    exposeHeaders: texts('ExposeHeader'),
    ...optional('maxAgeSeconds', readMaxAge(texts('MaxAgeSeconds'))),
  }
  checkRule(read)
  return read
}

function checkRule(rule: CorsRule): void {
  if (rule.allowedMethods.length === 0 || rule.allowedOrigins.length === 0)
    throw new S3Error('MalformedXML', { message: 'A CORSRule needs an AllowedMethod and an AllowedOrigin.' })
  for (const method of rule.allowedMethods) {
    if (!CORS_METHODS.includes(method)) {
      throw invalid(`Found unsupported HTTP method in CORS config. Unsupported method is ${method.slice(0, 100)}`)
    }
  }
  for (const origin of rule.allowedOrigins) refusePattern('AllowedOrigin', origin)
  for (const header of rule.allowedHeaders) {
    refusePattern('AllowedHeader', header)
    if (!TOKEN.test(header)) throw invalid(`AllowedHeader "${header.slice(0, 100)}" is not a valid header name.`)
  }
  for (const header of rule.exposeHeaders) {
    if (header.includes('*')) {
      throw invalid(
        `ExposeHeader "${header.slice(0, 100)}" contains wildcard. We currently do not support wildcard for ExposeHeader.`,
      )
    }
    if (!TOKEN.test(header)) throw invalid(`ExposeHeader "${header.slice(0, 100)}" is not a valid header name.`)
  }
}

function refusePattern(name: string, pattern: string): void {
  if (pattern === '') throw new S3Error('MalformedXML', { message: `An ${name} must not be empty.` })
  if (pattern.split('*').length > 2) {
    throw invalid(`${name} "${pattern.slice(0, 100)}" can not have more than one wildcard.`)
  }
}

function readId([id, ...more]: readonly string[]): string | undefined {
  if (more.length > 0 || (id?.length ?? 0) > MAX_ID) {
    throw new S3Error('MalformedXML', { message: `A CORSRule can have one ID of at most ${MAX_ID} characters.` })
  }
  return id || undefined
}

function readMaxAge([age, ...more]: readonly string[]): number | undefined {
  if (age === undefined) return undefined
  const seconds = /^\d{1,10}$/.test(age) ? Number(age) : Number.NaN
  if (more.length > 0 || !(seconds <= 2_147_483_647)) {
    throw new S3Error('MalformedXML', { message: 'MaxAgeSeconds must be one whole number of seconds.' })
  }
  return seconds
}

function optional<K extends string, V>(name: K, value: V | undefined): { [N in K]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { [N in K]?: V }
}

function invalid(message: string): S3Error {
  return new S3Error('InvalidRequest', { message })
}

export function corsDocument(rules: readonly CorsRule[]): string {
  return document('CORSConfiguration', rules.map(ruleElement).join(''))
}

function ruleElement(rule: CorsRule): string {
  const each = (name: string, texts: readonly string[]) => texts.map((text) => element(name, text)).join('')
  return [
    '<CORSRule>',
    element('ID', rule.id),
    each('AllowedMethod', rule.allowedMethods),
    each('AllowedOrigin', rule.allowedOrigins),
    each('AllowedHeader', rule.allowedHeaders),
    element('MaxAgeSeconds', rule.maxAgeSeconds),
    each('ExposeHeader', rule.exposeHeaders),
    '</CORSRule>',
  ].join('')
}

/** The parameters of a preflight, or of a cross-origin request itself. */
interface CorsQuestion {
  readonly origin: string
  readonly method: string
  /** Requested header names in any case; preflight only. */
  readonly headers?: readonly string[]
}

/** Request headers that determine the response, so that caches do not reuse it for other origins. */
const CORS_VARY = 'Origin, Access-Control-Request-Headers, Access-Control-Request-Method'

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

/** Adds CORS headers to a response, successful or not, for browsers whose page has another origin. Never rejects. */
export type WithCors = (request: RequestOutline, reply: Reply) => Promise<Reply>

interface WithCorsDeps {
  readonly settings: BucketSettings
  readonly log: Logger
  /** Matches user metadata that plugins add to responses. */
  readonly outputMetadata: (name: string) => boolean
  /** The headers for a page of the server's own console, which needs no rule; undefined for other requests. */
  readonly console?: ((headers: RequestHead['headers'], host: string) => ReplyHeaders | undefined) | undefined
}

export function withCors({ settings, log, outputMetadata, console }: WithCorsDeps): WithCors {
  return async (head, reply) => {
    const { origin } = head.headers
    const own = console?.(head.headers, head.host)
    if (own) return { ...reply, headers: { ...reply.headers, ...own } }
    if (head.bucket === undefined || head.method === 'OPTIONS') return reply
    try {
      const rules = await settings.get(head.bucket, 'cors')
      if (!rules) return reply
      // A cached answer to an <img> must not serve a later fetch() from another origin.
      if (origin === undefined) return { ...reply, headers: { ...reply.headers, vary: CORS_VARY } }
      // Browsers send this header with a preflight alone. S3's Vary names it in each answer.
      const method = head.headers['access-control-request-method'] ?? head.method
      const answer = corsAnswer(rules, { origin, method })
      const headers = answer ? exposing(answer, ownHeaders(reply, outputMetadata)) : { vary: CORS_VARY }
      return { ...reply, headers: { ...reply.headers, ...headers } }
    } catch (err) {
      const facts = { err, requestId: head.id, bucket: head.bucket }
      log.warn(facts, 'sent a response without CORS headers: could not read the rules')
      return reply
    }
  }
}

/** Exposed with every response that has headers beyond S3. */
const COMMON = [
  'ETag',
  'x-amz-request-id',
  'x-amz-restore',
  'x-amz-storage-class',
  'x-dealgate-job-id',
  'x-dealgate-next-continuation-token',
]

/**
 * Lists the headers to expose even if no rule of the bucket names them, because they are no S3 headers: without them a
 * page could not use extensions. Empty for plain S3 responses.
 */
function ownHeaders({ headers }: Reply, outputMetadata: (name: string) => boolean): string[] {
  const own = Object.keys(headers).filter(
    (name) =>
      name === 'x-amz-restore' ||
      name.startsWith('x-dealgate-') ||
      (name.startsWith('x-amz-meta-') && outputMetadata(name.slice('x-amz-meta-'.length))),
  )
  return own.length === 0 ? [] : [...new Set([...COMMON, ...own])]
}

function exposing(answer: ReplyHeaders, names: readonly string[]): ReplyHeaders {
  if (names.length === 0) return answer
  const exposed = String(answer['access-control-expose-headers'] ?? '')
  const known = exposed.toLowerCase().split(/\s*,\s*/)
  const more = names.filter((name) => !known.includes(name.toLowerCase()))
  return { ...answer, 'access-control-expose-headers': [...(exposed ? [exposed] : []), ...more].join(', ') }
}

/**
 * One rule of a bucket's CORS configuration.
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/ManageCorsUsing.html
 */
export interface CorsRule {
  readonly id?: string
  readonly allowedMethods: readonly string[]
  /** Each with one `*` at most. */
  readonly allowedOrigins: readonly string[]
  /** Each with one `*` at most. */
  readonly allowedHeaders: readonly string[]
  readonly exposeHeaders: readonly string[]
  /** Time for which a browser may cache the response to a preflight, s. */
  readonly maxAgeSeconds?: number
}

declare module '../api/settings.js' {
  interface SettingTypes {
    /** In order: the first rule that matches a request applies. */
    cors: readonly CorsRule[]
  }
}

export const CORS_METHODS: readonly string[] = ['GET', 'PUT', 'HEAD', 'POST', 'DELETE']
