import type { Question } from '../question.js'
import { actionsWithKey } from './condition-keys.js'
import { type Condition, holds, readConditions } from './conditions.js'
import {
  actionsOf,
  canBegin,
  charsOf,
  type Lookup,
  malformed,
  matchesTokens,
  readTemplate,
  resolveTemplate,
  shown,
  type Template,
  type Token,
  tokensOf,
} from './patterns.js'
import { nameOf, type Principals, readPrincipals } from './principals.js'

/** A list of patterns, or all but these. */
interface Matches<T> {
  readonly negated: boolean
  readonly patterns: readonly T[]
}

/** A statement of a policy, ready for evaluation. */
export interface Statement {
  /** For messages and the log: `statement 2 ("Sid")`. */
  readonly label: string
  readonly effect: 'Allow' | 'Deny'
  /** Absent in the policy of an identity. */
  readonly principals: Principals | undefined
  /** In lower case. */
  readonly actions: Matches<readonly Token[]>
  readonly resources: Matches<Template>
  readonly conditions: readonly Condition[]
}

interface StatementOptions {
  readonly kind: 'bucket' | 'identity'
  readonly bucket?: string
  /** Names of the actions of plugins, such as `deal:CreateObjectDeal`. Absent: their names are not checked. */
  readonly pluginActions?: readonly string[]
  /** The policy has Version 2012-10-17. */
  readonly variables: boolean
  readonly label: string
}

const MEMBERS = [
  'Sid',
  'Effect',
  'Principal',
  'NotPrincipal',
  'Action',
  'NotAction',
  'Resource',
  'NotResource',
  'Condition',
]

/** Throws MalformedPolicy. */
export function readStatement(json: Readonly<Record<string, unknown>>, options: StatementOptions): Statement {
  const { kind, variables, label } = options
  const unknown = Object.keys(json).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined) throw malformed('Unknown field', `${shown(unknown)} in ${label}`)
  if (json.Sid !== undefined && typeof json.Sid !== 'string') throw malformed('Invalid Sid', `in ${label}`)
  const effect = json.Effect
  if (effect === undefined) throw malformed('Missing required field Effect', label)
  if (effect !== 'Allow' && effect !== 'Deny') throw malformed('Invalid effect', `${shown(effect)} in ${label}`)

  const actionPart = choose(json, 'Action', options)
  const resourcePart = choose(json, 'Resource', options)
  const words = actionPart.values.map((word) => readAction(word, options))
  const names = resourcePart.values
  const templates = names.map((name) => readResource(name, options))
  const conditions = json.Condition === undefined ? [] : readConditions(json.Condition, { variables, label })
  if (kind === 'bucket' && !actionPart.negated) {
    if (!resourcePart.negated) requireApt(words, templates, options)
    requireAptKeys(words, conditions, label)
  }
  return {
    label,
    effect,
    principals: readPrincipal(json, options),
    actions: { negated: actionPart.negated, patterns: words.map((word) => tokensOf(word)) },
    resources: { negated: resourcePart.negated, patterns: templates },
    conditions,
  }
}

function readPrincipal(json: Readonly<Record<string, unknown>>, { kind, label }: StatementOptions) {
  const { Principal, NotPrincipal } = json
  if (kind === 'identity') {
    if (Principal === undefined && NotPrincipal === undefined) return undefined
    throw malformed('Policy document should not specify a principal', label)
  }
  if (Principal !== undefined && NotPrincipal !== undefined)
    throw malformed('Statement has both Principal and NotPrincipal', label)
  if (Principal === undefined && NotPrincipal === undefined) throw malformed('Missing required field Principal', label)
  return readPrincipals(Principal ?? NotPrincipal, Principal === undefined, label)
}

/** Reads one of a member and its negation, such as Action and NotAction. */
function choose(json: Readonly<Record<string, unknown>>, name: 'Action' | 'Resource', { label }: StatementOptions) {
  const [plain, negation] = [json[name], json[`Not${name}`]]
  if (plain !== undefined && negation !== undefined) throw malformed(`Statement has both ${name} and Not${name}`, label)
  const value = plain ?? negation
  if (value === undefined) throw malformed(`Missing required field ${name}`, label)
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (values.length === 0) throw malformed(`Policy has no ${name.toLowerCase()}`, label)
  return {
    negated: plain === undefined,
    values: values.map((one) => {
      if (typeof one === 'string') return one
      throw malformed(`Policy has invalid ${name.toLowerCase()}`, `${shown(one)} in ${label}`)
    }),
  }
}

/** Returns the action in lower case. */
function readAction(word: string, { pluginActions, label }: StatementOptions): string {
  const lower = word.toLowerCase()
  const isKnown =
    lower === '*' ||
    (/^s3:[a-z*?]+$/.test(lower)
      ? actionsOf(lower).length > 0
      : /^[a-z][a-z0-9-]*:[a-z*?]+$/.test(lower) &&
        (pluginActions === undefined ||
          pluginActions.some((name) => matchesTokens(tokensOf(lower), charsOf(name.toLowerCase())))))
  if (!isKnown) throw malformed('Policy has invalid action', `${shown(word)} in ${label}`)
  return lower
}

function readResource(name: string, { kind, bucket, variables, label }: StatementOptions): Template {
  const template = readTemplate(name, { wildcards: true, variables }, label)
  if (name === '*') return template
  const invalid = () => malformed('Policy has invalid resource', `${shown(name)} in ${label}`)
  if (!name.startsWith('arn:')) throw invalid()
  // A variable may become any text.
  const tokens = template.parts.map((part): Token => (typeof part === 'object' ? ANY_TOKEN : part))
  const own = `arn:aws:s3:::${kind === 'bucket' ? bucket : ''}`
  const reaches =
    kind === 'bucket' ? canBegin(tokens, `${own}/`) || matchesTokens(tokens, charsOf(own)) : canBegin(tokens, own)
  if (!reaches) throw invalid()
  return template
}

const ANY_TOKEN = tokensOf('*')[0] as Token

/** Throws MalformedPolicy for an action that none of the resources can be the resource of. */
function requireApt(
  words: readonly string[],
  templates: readonly Template[],
  { bucket, label }: StatementOptions,
): void {
  const own = `arn:aws:s3:::${bucket}`
  const all = templates.map(({ parts }) => parts.map((part): Token => (typeof part === 'object' ? ANY_TOKEN : part)))
  const onBucket = all.some((tokens) => matchesTokens(tokens, charsOf(own)))
  const onObjects = all.some((tokens) => canBegin(tokens, `${own}/`))
  for (const word of words) {
    if (!word.startsWith('s3:')) continue
    const apt = actionsOf(word).some(({ on }) => (on === 'object' && onObjects) || (on === 'bucket' && onBucket))
    if (!apt) throw malformed('Action does not apply to any resource(s) in statement', `${word} in ${label}`)
  }
}

/** Throws MalformedPolicy for a key that the requests of none of the actions have. */
function requireAptKeys(words: readonly string[], conditions: readonly Condition[], label: string): void {
  for (const { key } of conditions) {
    const apt = actionsWithKey(key)
    if (!apt || words.some((word) => apt.some((name) => matchesTokens(tokensOf(word), charsOf(name))))) continue
    throw malformed(
      'Conditions do not apply to combination of actions and resources in statement',
      `${key} in ${label}`,
    )
  }
}

/** True if the statement depends on the value of a key that begins like this, in a condition or a variable. */
export function asksFor({ resources, conditions }: Statement, prefix: string): boolean {
  return (
    conditions.some((condition) => holdsBy(condition, prefix)) || resources.patterns.some((one) => names(one, prefix))
  )
}

function holdsBy({ key, operands }: Condition, prefix: string): boolean {
  return key.startsWith(prefix) || operands.some(({ template }) => template && names(template, prefix))
}

function names({ parts }: Template, prefix: string): boolean {
  return parts.some((part) => typeof part === 'object' && part.key.startsWith(prefix))
}

/** Returns the statement as if all of it that depends on keys which begin like this held. */
export function assuming(statement: Statement, prefix: string): Statement {
  const { resources, conditions } = statement
  return {
    ...statement,
    conditions: conditions.filter((condition) => !holdsBy(condition, prefix)),
    ...(resources.patterns.some((one) => names(one, prefix)) && { resources: EVERY_RESOURCE }),
  }
}

const EVERY_RESOURCE: Statement['resources'] = { negated: true, patterns: [] }

/**
 * Returns the statement as it holds for every later request of the same caller; undefined for an Allow that does not.
 * A Deny loses its conditions, and its resources where a variable may name others by then.
 */
export function lastingStatement(statement: Statement): Statement | undefined {
  const { effect, resources, conditions } = statement
  const varies = resources.patterns.some(({ parts }) => parts.some((part) => typeof part === 'object' && 'key' in part))
  if (conditions.length === 0 && !varies) return statement
  if (effect === 'Allow') return undefined
  return { ...statement, conditions: [], ...(varies && { resources: EVERY_RESOURCE }) }
}

/** Returns as whom a statement that applies to the question names its principal; undefined if it does not apply. */
export function applies(
  statement: Statement,
  question: Question,
  lookup: Lookup,
): 'identity' | 'everyone' | 'account' | undefined {
  const { effect, principals, conditions } = statement
  const name = principals ? nameOf(principals, question.principal, effect) : 'identity'
  if (name === undefined) return undefined
  if (!appliesToAction(statement, question.action.toLowerCase())) return undefined
  if (!appliesToResource(statement, question.resource, lookup)) return undefined
  return conditions.every((condition) => holds(condition, lookup, effect)) ? name : undefined
}

/** True if the statement allows the principal the action on some resource, under some conditions. */
export function mayAllow(statement: Statement, principal: Question['principal'], action: string): boolean {
  const { effect, principals } = statement
  if (effect !== 'Allow' || (principals && nameOf(principals, principal, effect) === undefined)) return false
  return appliesToAction(statement, action.toLowerCase())
}

/** `*` and NotAction of an Allow mean the actions of S3: those of plugins are named by their own prefix. */
function appliesToAction({ effect, actions: { negated, patterns } }: Statement, action: string): boolean {
  const chars = charsOf(action)
  const isS3 = action.startsWith('s3:')
  const isListed = patterns.some((pattern) => {
    if (pattern.length === 1 && pattern[0] === ANY_TOKEN) return isS3 || negated || effect === 'Deny'
    return matchesTokens(pattern, chars)
  })
  if (!negated) return isListed
  return !isListed && (isS3 || effect === 'Deny')
}

/** A NotResource whose variable has no value leaves out an unknown resource: it then allows nothing. */
function appliesToResource({ effect, resources }: Statement, resource: string, lookup: Lookup): boolean {
  const chars = charsOf(resource)
  const patterns = resources.patterns.map((template) => resolveTemplate(template, lookup))
  const isListed = patterns.some((tokens) => tokens !== undefined && matchesTokens(tokens, chars))
  if (!resources.negated) return isListed
  return !isListed && (effect === 'Deny' || !patterns.includes(undefined))
}
