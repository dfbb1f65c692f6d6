import { isConditionKey, isMultivalued } from './condition-keys.js'
import { malformed, shown } from './malformed.js'
import { ANY, ONE, type Token } from './wildcard.js'

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
