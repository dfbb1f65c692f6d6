import { isConditionKey, isMultivalued } from './condition-keys.js'
import { type Operand, operatorNamed } from './operators.js'
import { type Lookup, malformed, shown } from './patterns.js'

/** One operator on one key, with the values of the policy. All conditions of a statement must hold. */
export interface Condition {
  /** In lower case. */
  readonly key: string
  /** Name of the operator, without qualifier and without IfExists. */
  readonly operator: string
  readonly qualifier: 'ForAllValues' | 'ForAnyValue' | undefined
  readonly ifExists: boolean
  readonly negated: boolean
  readonly operands: readonly Operand[]
  /** The value of the operator Null: the key must be absent. */
  readonly absent?: readonly boolean[]
}

interface ConditionOptions {
  readonly variables: boolean
  readonly label: string
}

/** Reads the member Condition of a statement. Throws MalformedPolicy. */
export function readConditions(json: unknown, options: ConditionOptions): Condition[] {
  const { label } = options
  return entriesOf(json, label).flatMap(([name, keys]) =>
    entriesOf(keys, label).map(([key, values]) => readCondition(name, key, textsOf(values, key, label), options)),
  )
}

function readCondition(name: string, key: string, values: readonly string[], options: ConditionOptions): Condition {
  const { label, variables } = options
  const [, qualifier, operator = '', ifExists] = /^(?:(ForAllValues|ForAnyValue):)?(.*?)(IfExists)?$/s.exec(name) ?? []
  const lower = key.toLowerCase()
  if (!isConditionKey(lower)) throw malformed('Policy has an invalid condition key', `${shown(key)} in ${label}`)
  const invalid = (value: string) =>
    malformed('Policy has an invalid condition value', `${shown(value)} for ${name} of ${shown(key)} in ${label}`)
  const base = { key: lower, operator, negated: false, ifExists: ifExists !== undefined }
  if (name === 'Null') {
    const absent = values.map((value) => {
      if (!/^(true|false)$/i.test(value)) throw invalid(value)
      return value.toLowerCase() === 'true'
    })
    return { ...base, qualifier: undefined, operands: [], absent }
  }
  const found = operatorNamed(operator)
  if (!found) throw malformed('Invalid Condition type', `${shown(name)} in ${label}`)
  const operands = values.map((value) => {
    // A request shows grantees without quotes.
    const text = lower.startsWith('s3:x-amz-grant-') ? value.replaceAll('"', '') : value
    const operand = found.read(text, variables, label)
    if (!operand) throw invalid(value)
    return operand
  })
  return { ...base, qualifier: qualifier as Condition['qualifier'], negated: found.negated, operands }
}

/**
 * True if the condition holds.
 *
 * A negated test whose result is unknown, because a variable has no value or a value is not of the right type,
 * holds in a Deny only: it must not open anything. Nor does a test of a key that has two values although it is single:
 * tags whose keys differ in case alone are one key here, and an Allow needs both of them, a Deny one.
 */
export function holds(condition: Condition, lookup: Lookup, effect: 'Allow' | 'Deny'): boolean {
  const { key, qualifier, ifExists, negated, operands, absent } = condition
  const values = lookup(key) ?? []
  if (absent) return absent.includes(values.length === 0)
  if (values.length === 0 && ifExists) return true

  const passes = (value: string): boolean => {
    const results = operands.map(({ test }) => test(value, lookup))
    if (!negated) return results.includes(true)
    return !results.includes(true) && (effect === 'Deny' || !results.includes(undefined))
  }
  // AWS treats an empty text as no value where it compares sets.
  const isEmptySet = values.every((value) => value === '')
  if (qualifier === 'ForAllValues') return isEmptySet || values.every(passes)
  if (qualifier === 'ForAnyValue') return !isEmptySet && values.some(passes)
  if (values.length > 1 && !isMultivalued(key)) return effect === 'Allow' ? values.every(passes) : values.some(passes)
  return negated ? values.every(passes) : values.some(passes)
}

function entriesOf(json: unknown, label: string): [string, unknown][] {
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw malformed('Policy has an invalid condition', `${shown(json)} in ${label} is not an object`)
  return Object.entries(json)
}

/** Returns one or more values as texts; numbers and booleans may stand without quotes. */
function textsOf(json: unknown, key: string, label: string): string[] {
  const list: readonly unknown[] = Array.isArray(json) ? json : [json]
  if (list.length === 0) throw malformed('Policy has an invalid condition value', `none for ${shown(key)} in ${label}`)
  return list.map((value) => {
    if (typeof value === 'string') return value
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
    throw malformed('Policy has an invalid condition value', `${shown(value)} for ${shown(key)} in ${label}`)
  })
}
