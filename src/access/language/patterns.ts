import { S3Error } from '../../../common/errors/s3-error.js'
import { isConditionKey, isMultivalued } from './condition-keys.js'

const words = (text: string): string[] => text.trim().split(/\s+/)

/**
 * Actions on objects, on buckets and on neither:
 * https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
 */
const onObjects = words(`
  AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging DeleteObjectVersion DeleteObjectVersionTagging GetObject GetObjectAcl
  GetObjectAttributes GetObjectLegalHold GetObjectRetention GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl
  GetObjectVersionAttributes GetObjectVersionForReplication GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication
  ListMultipartUploadParts ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold PutObjectRetention PutObjectTagging
  PutObjectVersionAcl PutObjectVersionTagging ReplicateDelete ReplicateObject ReplicateTags RestoreObject UpdateObjectEncryption
`)
const onBuckets = words(`
  CreateBucket CreateBucketMetadataTableConfiguration DeleteBucket DeleteBucketMetadataTableConfiguration DeleteBucketPolicy DeleteBucketWebsite
  GetAccelerateConfiguration GetAnalyticsConfiguration GetBucketAbac GetBucketAcl GetBucketCORS GetBucketLocation GetBucketLogging
  GetBucketMetadataTableConfiguration GetBucketNotification GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPolicy
  GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging GetBucketVersioning GetBucketWebsite
  GetEncryptionConfiguration GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration GetMetricsConfiguration
  GetReplicationConfiguration ListBucket ListBucketMultipartUploads ListBucketVersions PutAccelerateConfiguration PutAnalyticsConfiguration PutBucketAbac
  PutBucketAcl PutBucketCORS PutBucketLogging PutBucketNotification PutBucketObjectLockConfiguration PutBucketOwnershipControls PutBucketPolicy
  PutBucketPublicAccessBlock PutBucketRequestPayment PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
  PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration PutMetricsConfiguration PutReplicationConfiguration
`)
const onNothing = words(`
  CreateJob DeleteJobTagging DescribeJob GetJobTagging ListAllMyBuckets ListJobs PutJobTagging UpdateJobPriority UpdateJobStatus
`)

interface KnownAction {
  /** Name as S3 spells it, with `s3:`. */
  readonly name: string
  readonly on: 'object' | 'bucket' | 'service'
}

const known: readonly KnownAction[] = [
  ...onObjects.map((name) => ({ name: `s3:${name}`, on: 'object' as const })),
  ...onBuckets.map((name) => ({ name: `s3:${name}`, on: 'bucket' as const })),
  ...onNothing.map((name) => ({ name: `s3:${name}`, on: 'service' as const })),
]

/** The known actions by their names in lower case. */
const byName: ReadonlyMap<string, KnownAction> = new Map(known.map((action) => [action.name.toLowerCase(), action]))

/**
 * Returns the actions of S3 that a pattern of a policy matches, ignoring case; `*` matches any text and `?` any
 * character. Empty for an unknown action.
 */
export function actionsOf(word: string): readonly KnownAction[] {
  const pattern = word.toLowerCase()
  if (!/[*?]/.test(pattern)) return [byName.get(pattern) ?? []].flat()
  const tokens = tokensOf(pattern)
  return [...byName].filter(([name]) => matchesTokens(tokens, name)).map(([, action]) => action)
}

/** Any text. */
const ANY = Symbol('*')

/** Any one character. */
const ONE = Symbol('?')

/** One character of a pattern: a code point, or a wildcard. */
export type Token = string | typeof ANY | typeof ONE

/** Returns the tokens of a pattern in which `*` and `?` are wildcards. */
export function tokensOf(pattern: string): Token[] {
  return Array.from(pattern, (char) => (char === '*' ? ANY : char === '?' ? ONE : char))
}

/** The characters of a text: its code points. */
type Chars = ArrayLike<string>

export function charsOf(text: string): Chars {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text) : text
}

/**
 * Matches in time bounded by the product of the lengths, which a regular expression from the pattern would not
 * guarantee.
 */
export function matchesTokens(pattern: readonly Token[], text: Chars): boolean {
  let p = 0
  let at = 0
  let star = -1
  let resume = 0
  while (at < text.length) {
    const token = pattern[p]
    if (token === ANY) {
      star = p++
      resume = at
    } else if (token !== undefined && (token === ONE || token === text[at])) {
      p++
      at++
    } else if (star >= 0) {
      p = star + 1
      at = ++resume
    } else return false
  }
  while (pattern[p] === ANY) p++
  return p === pattern.length
}

/** True if the pattern matches some text that starts with `beginning`. */
export function canBegin(pattern: readonly Token[], beginning: string): boolean {
  let states = closure(pattern, [0])
  for (const char of beginning) {
    const next = [...states].flatMap((state) => {
      const token = pattern[state]
      if (token === ANY) return [state]
      return token === ONE || token === char ? [state + 1] : []
    })
    states = closure(pattern, next)
  }
  return states.size > 0
}

/** Adds the states behind each `*`, which may stand for no text. */
function closure(pattern: readonly Token[], states: readonly number[]): Set<number> {
  const all = new Set(states)
  for (const state of all) if (pattern[state] === ANY) all.add(state + 1)
  return all
}

/** A policy variable: `${key}` or `${key, 'default'}`. */
interface Variable {
  /** In lower case. */
  readonly key: string
  readonly fallback: readonly string[] | undefined
}

/** A text of a policy, with its wildcards and variables. */
export interface Template {
  readonly parts: readonly (Token | Variable)[]
  /** The tokens of a template without variables. */
  readonly fixed: readonly Token[] | undefined
}

export interface TemplateOptions {
  /** `*` and `?` are wildcards. */
  readonly wildcards: boolean
  /** `${…}` is a variable: in Version 2012-10-17. */
  readonly variables: boolean
}

export type Lookup = (key: string) => readonly string[] | undefined

/** Most characters of a text with wildcards: more than the longest ARN of an object. */
const MAX_PATTERN = 2048

/**
 * Reads a text of a policy. Throws MalformedPolicy for unknown and broken variables.
 *
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
 */
export function readTemplate(text: string, { wildcards, variables }: TemplateOptions, label: string): Template {
  const parts: (Token | Variable)[] = []
  for (let at = 0; at < text.length; ) {
    if (variables && text.startsWith('${', at)) {
      const end = text.indexOf('}', at)
      if (end < 0) throw malformed('Policy has an invalid variable', `${shown(text)} in ${label} lacks a }`)
      parts.push(readVariable(text.slice(at + 2, end), label))
      at = end + 1
      continue
    }
    const char = String.fromCodePoint(text.codePointAt(at) ?? 0)
    const token = wildcards && char === '*' ? ANY : wildcards && char === '?' ? ONE : char
    // Several stars in a row mean the same as one.
    if (token !== ANY || parts.at(-1) !== ANY) parts.push(token)
    at += char.length
  }
  if (parts.length > MAX_PATTERN && parts.includes(ANY))
    throw malformed('Policy has too long a pattern', `more than ${MAX_PATTERN} characters in ${label}`)
  const isFixed = parts.every((part): part is Token => typeof part !== 'object')
  return { parts, fixed: isFixed ? (parts as Token[]) : undefined }
}

/** Reads what stands between the braces: a key with an optional default, or an escaped `*`, `?` or `$`. */
function readVariable(text: string, label: string): Token | Variable {
  if (text === '*' || text === '?' || text === '$') return text
  const [, name = '', fallback] = /^\s*([^\s,']+)\s*(?:,\s*'([^']*)'\s*)?$/.exec(text) ?? []
  if (!isConditionKey(name.toLowerCase()) || isMultivalued(name.toLowerCase()))
    throw malformed('Policy has an invalid variable', `\${${shown(text)}} in ${label}`)
  return { key: name.toLowerCase(), fallback: fallback === undefined ? undefined : Array.from(fallback) }
}

/**
 * Returns the tokens with the variables replaced by their values, in which `*` and `?` stand for themselves; undefined
 * if a variable has no value, or several.
 */
export function resolveTemplate({ parts, fixed }: Template, lookup: Lookup): readonly Token[] | undefined {
  if (fixed) return fixed
  const tokens: Token[] = []
  for (const part of parts) {
    if (typeof part !== 'object') {
      tokens.push(part)
      continue
    }
    const values = lookup(part.key)
    const value = values?.length === 1 ? values[0] : undefined
    if (value === undefined && (values?.length || !part.fallback)) return undefined
    for (const char of value ?? part.fallback ?? []) tokens.push(char)
  }
  return tokens
}

/** True if the text has a wildcard or a variable. */
export function isOpen({ parts }: Template): boolean {
  return parts.some((part) => typeof part !== 'string')
}

/**
 * Returns MalformedPolicy.
 * @param problem in the words of S3, such as `Policy has invalid action`
 * @param detail the offending value, and the statement that has it
 */
export function malformed(problem: string, detail = ''): S3Error {
  return new S3Error('MalformedPolicy', { message: detail === '' ? problem : `${problem}: ${detail}` })
}

/** Returns a value of the policy for a message: at most 200 characters, without control characters. */
export function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : json(value)
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch (error) {
    // Writing JSON recurses, where reading it does not.
    if (error instanceof RangeError) return 'a value that is nested too deeply'
    throw error
  }
}
