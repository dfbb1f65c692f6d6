import type { Principal, ServiceName } from '../question.js'
import { malformed, shown } from './patterns.js'

/** The member Principal or NotPrincipal of a statement. */
export interface Principals {
  readonly negated: boolean
  readonly everyone: boolean
  /** Canonical ids, or the account numbers of ARNs. */
  readonly accounts: readonly string[]
  /** ARNs of identities. */
  readonly identities: readonly string[]
  readonly services: readonly string[]
}

/** The services that write here. */
const SERVICES: readonly ServiceName[] = ['logging.s3.amazonaws.com']

const ACCOUNT = /^(?:[0-9a-f]{64}|[0-9]{12})$/
const ARN = /^arn:aws:iam::([0-9a-f]{64}|[0-9]{12}):(?:(root)|user\/[\w+=,.@/-]{1,576})$/

/** Throws MalformedPolicy. */
export function readPrincipals(json: unknown, negated: boolean, label: string): Principals {
  if (json === '*') return { negated, everyone: true, accounts: [], identities: [], services: [] }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw invalid(json, label)
  const members = Object.entries(json)
  if (members.length === 0) throw invalid(json, label)
  const accounts: string[] = []
  const identities: string[] = []
  const services: string[] = []
  let everyone = false
  for (const [kind, value] of members) {
    if (kind !== 'AWS' && kind !== 'CanonicalUser' && kind !== 'Service')
      throw invalid(kind, label, 'there are only the kinds AWS, CanonicalUser and Service here')
    const names: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (names.length === 0) throw invalid(json, label)
    for (const name of names) {
      if (typeof name !== 'string') throw invalid(name, label)
      const [, number, root] = (kind === 'AWS' && ARN.exec(name)) || []
      if (kind === 'Service') services.push(readService(name, label))
      else if (kind === 'AWS' && name === '*') everyone = true
      else if (ACCOUNT.test(name) && (kind === 'AWS' || name.length === 64)) accounts.push(name)
      else if (number !== undefined && root) accounts.push(number)
      else if (number !== undefined) identities.push(name)
      else throw invalid(name, label)
    }
  }
  return { negated, everyone, accounts, identities, services }
}

function readService(name: string, label: string): string {
  if (SERVICES.some((known) => known === name)) return name
  throw invalid(name, label, `the services that write here are ${SERVICES.join(', ')}`)
}

function invalid(value: unknown, label: string, why = ''): Error {
  return malformed('Invalid principal in policy', `${shown(value)} in ${label}${why && `: ${why}`}`)
}

/**
 * Returns as whom a statement names the principal; undefined if it does not apply to the principal.
 *
 * NotPrincipal of an Allow leaves out the identities of a named account, that of a Deny does not: an identity is exempt
 * from the Deny by its own ARN only.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_notprincipal.html
 */
export function nameOf(
  principals: Principals,
  principal: Principal,
  effect: 'Allow' | 'Deny',
): 'identity' | 'everyone' | 'account' | undefined {
  const { negated, everyone, accounts, identities, services } = principals
  const isIdentity = principal.kind === 'account' && isNamed(identities, principal.arn)
  const isAccount =
    principal.kind === 'account' && (accounts.includes(principal.account) || isNamed(accounts, numberOf(principal.arn)))
  if (principal.kind === 'service') {
    const isNamedService = services.includes(principal.name)
    if (negated) return everyone || isNamedService ? undefined : 'everyone'
    return isNamedService ? 'identity' : everyone ? 'everyone' : undefined
  }
  if (!negated) return isIdentity ? 'identity' : everyone ? 'everyone' : isAccount ? 'account' : undefined
  const isExempt = everyone || isIdentity || (isAccount && (effect === 'Allow' || isRoot(principal)))
  return isExempt ? undefined : 'everyone'
}

/** True for a principal that stands for its whole account, rather than for an identity of it. */
export function isRoot(principal: Principal): boolean {
  return principal.kind === 'account' && (principal.root ?? principal.arn === undefined)
}

function isNamed(names: readonly string[], name: string | undefined): boolean {
  return name !== undefined && names.includes(name)
}

function numberOf(arn: string | undefined): string | undefined {
  return arn === undefined ? undefined : ARN.exec(arn)?.[1]
}
