import { isBroad } from '../../../common/addresses/cidr.js'
import type { Condition } from './conditions.js'
import type { Statement } from './statement.js'
import { isOpen, type Template } from './template.js'

/** Keys whose fixed values name callers that the owner of the bucket can trust. */
const TRUSTED = ['aws:principalaccount', 'aws:principalarn', 'aws:userid']
const POSITIVE = ['StringEquals', 'StringEqualsIgnoreCase', 'StringLike', 'ArnEquals', 'ArnLike']

/**
 * True if the statement grants access to the public: to callers that neither Principal nor a condition limits to fixed
 * values.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html#access-control-block-public-access-policy-status
 */
export function isPublicStatement({ effect, principals, conditions }: Statement): boolean {
  if (effect !== 'Allow' || !principals) return false
  if (!principals.everyone && !principals.negated) return false
  return !conditions.some(isFixed)
}

function isFixed({ key, operator, qualifier, ifExists, operands }: Condition): boolean {
  // Both hold for a request that does not have the key.
  if (ifExists || qualifier === 'ForAllValues') return false
  if (key === 'aws:sourceip' && operator === 'IpAddress')
    return operands.every(({ block }) => block !== undefined && !isBroad(block))
  if (!TRUSTED.includes(key) || !POSITIVE.includes(operator)) return false
  return operands.every(({ template }) => template !== undefined && !isOpen(template) && !isUnsigned(template))
}

/** True for the `aws:userid` of every caller without a signature, in any case: StringEqualsIgnoreCase ignores it. */
function isUnsigned({ fixed }: Template): boolean {
  return fixed?.join('').toLowerCase() === 'anonymous'
}
