import { S3Error } from '../../common/errors/s3-error.js'
import { document, element, parseXml, type XmlNode } from '../../common/xml/xml.js'
import { CORS_METHODS, type CorsRule } from './cors-rule.js'

/**
 * Maximum size of a document, bytes, and number of its rules.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html
 */
export const MAX_CORS_BYTES = 64 * 1024
const MAX_RULES = 100
const MAX_ID = 255

const KNOWN = new Set(['ID', 'AllowedMethod', 'AllowedOrigin', 'AllowedHeader', 'ExposeHeader', 'MaxAgeSeconds'])

/** RFC 9110 section 5.6.2. Responses contain the exposed names in a header, so they must be valid tokens. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** Parses a `<CORSConfiguration>`. Throws S3Error MalformedXML, InvalidRequest. */
export async function readCors(bytes: Buffer): Promise<CorsRule[]> {
  const root = await parseXml(bytes, 'CORSConfiguration')
  const rules = root.children.get('CORSRule') ?? []
  if (rules.length === 0) throw new S3Error('MalformedXML', { message: 'A CORSConfiguration needs a CORSRule.' })
  if (rules.length > MAX_RULES) {
    throw invalid(`The number of CORS rules should not exceed allowed limit of ${MAX_RULES} rules.`)
  }
  return rules.map(readRule)
}

function readRule(rule: XmlNode): CorsRule {
  const texts = (name: string) => (rule.children.get(name) ?? []).map(({ text }) => text.trim())
  const unknown = [...rule.children.keys()].find((name) => !KNOWN.has(name))
  if (unknown !== undefined) {
    throw new S3Error('MalformedXML', { message: `A CORSRule has no element ${unknown.slice(0, 100)}.` })
  }
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
