import type { S3Error } from '../../common/errors/s3-error.js'
import { mayAllow, type Statement } from './language/statement.js'
import { isPublicStatement, type PolicyOptions, readPolicy } from './policy.js'

/** What a person should know before storing a policy. */
interface Finding {
  /** An `error` keeps the policy from being stored. */
  readonly level: 'error' | 'warning'
  /** Place of the statement in the policy, from 1; absent for the policy as a whole. */
  readonly statement?: number
  readonly message: string
}

const ANONYMOUS = { kind: 'anonymous' } as const
const WRITES = ['s3:PutObject', 's3:DeleteObject']
const READ = 's3:GetObject'

/** Returns what is wrong with a policy, in each of its statements, and what its statements open to everybody. */
export function findingsOf(text: string, options: PolicyOptions): readonly Finding[] {
  const error = (problem: S3Error, statement?: number): Finding => ({
    ...{ level: 'error', message: problem.message },
    ...(statement !== undefined && { statement }),
  })
  const read = readPolicy(text, options)
  if ('problem' in read) return [error(read.problem)]
  return read.statements.flatMap((one, i) => {
    if ('problem' in one) return [error(one.problem, i + 1)]
    return warningsOf(one, options).map((message) => ({ level: 'warning' as const, statement: i + 1, message }))
  })
}

function warningsOf(statement: Statement, { pluginActions = [] }: PolicyOptions): string[] {
  const { effect, principals, conditions } = statement
  const forAnybody = { ...statement, principals: undefined }
  const allows = (action: string) => mayAllow(forAnybody, ANONYMOUS, action)
  const found: string[] = []
  if (isPublicStatement(statement)) {
    found.push('It gives access to everybody, also without a key pair.')
    if (WRITES.some(allows)) found.push('Everybody may store or delete objects.')
  }
  const paid = pluginActions.filter((action) => !/:(?:Get|List|Describe|Quote)/.test(action) && allows(action))
  if (effect === 'Allow' && paid.length > 0)
    found.push(`It allows actions of plugins that act, and may spend, as the owner of the bucket: ${paid.join(', ')}.`)
  const denies = { ...forAnybody, effect: 'Allow' as const }
  if (effect === 'Deny' && principals?.everyone && conditions.length === 0 && mayAllow(denies, ANONYMOUS, READ))
    found.push('It denies reading to everybody, also to the owner of the bucket.')
  return found
}
