import type { GatewayAccount } from '../../auth/caller.js'
import { canonicalId } from '../../auth/identities/canonical-id.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { element } from '../../common/xml/xml.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Reply } from '../../response/reply.js'
import { assumedRoleArn } from './caller-identity.js'
import { readIdentityToken } from './identity-token.js'
import type { Parameters } from './parameters.js'
import type { StsParts } from './plugin.js'
import { principalOf } from './principals.js'
import { stsError } from './sts-error.js'
import { stsReply } from './sts-reply.js'

const ACTION = 'AssumeRoleWithWebIdentity'
const NAMES = ['RoleArn', 'RoleSessionName', 'WebIdentityToken', 'ProviderId', 'Policy', 'DurationSeconds']
const MIN_SECONDS = 900
const MAX_SECONDS = 43_200
const DEFAULT_SECONDS = 3600
/** Longest session token, characters: clients send it in a header, and servers accept 16 KiB of headers. */
const MAX_TOKEN = 8192

/**
 * Issues temporary credentials for the gateway account of a user of the task platform, whose token this exchanges at
 * the gateway. The request needs no signature.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
 */
export async function assumeRole(
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  parameters: Parameters,
  parts: StsParts,
): Promise<Reply> {
  parameters.refuseOthers(['Action', 'Version', ...NAMES])
  const role = parameters.required('RoleArn', {
    min: 20,
    max: 2048,
    pattern: /^arn:[\w-]+:iam::[^:]*:role\/[\x21-\x7e]+$/,
  })
  const name = parameters.required('RoleSessionName', { min: 2, max: 64, pattern: /^[\w+=,.@-]*$/ })
  const identityToken = parameters.required('WebIdentityToken', { min: 4, max: 20_000 })
  parameters.text('ProviderId', { min: 4, max: 2048 })
  const seconds = readSeconds(parameters.get('DurationSeconds'))
  const policy = readPolicy(parameters.text('Policy', { min: 1, max: 2048 }), parts)
  const claims = readIdentityToken(identityToken)
  const now = parts.now()
  const ending = claims.expires ?? Number.POSITIVE_INFINITY
  if (ending <= now) throw stsError('ExpiredTokenException', 'The web identity token has expired: sign in again.')
  const account = await parts.limits.run(request.remoteAddress, () => exchange(parts, identityToken))
  const isOwn = (await parts.ownAccount()).accessKey === account.accessKey
  // Whole seconds, as the answer names it: the session must not end before that.
  const expires = Math.floor(Math.min(now + seconds * 1000, ending) / 1000) * 1000
  const issued = await parts.sessions.issue({ account, identityToken, name, role, policy, expires })
  const size = issued.sessionToken.length
  if (size > MAX_TOKEN) throw tooLarge(policy !== undefined)
  await parts.principals.keep(account, isOwn)
  const identity = { accessKeyId: principalOf(account), ...(!isOwn && { account }) }
  const content = [
    element('SubjectFromWebIdentityToken', claims.subject),
    element('Audience', claims.audience),
    '<AssumedRoleUser>',
    element('Arn', assumedRoleArn(canonicalId(identity), { role, name })),
    element('AssumedRoleId', `${identity.accessKeyId}:${name}`),
    '</AssumedRoleUser><Credentials>',
    element('AccessKeyId', issued.accessKeyId),
    element('SecretAccessKey', issued.secretAccessKey),
    element('SessionToken', issued.sessionToken),
    element('Expiration', new Date(expires).toISOString().replace('.000Z', 'Z')),
    '</Credentials>',
    element('Provider', claims.issuer),
    policy && element('PackedPolicySize', Math.ceil((100 * size) / MAX_TOKEN)),
  ]
  return stsReply(ACTION, content.join(''), request.id)
}

async function exchange({ standing }: StsParts, identityToken: string): Promise<GatewayAccount> {
  const account = await standing.accountOf(identityToken).catch((error: unknown) => {
    if (error instanceof S3Error && error.code === 'NotImplemented') throw error
    throw stsError('IDPCommunicationError', 'The object gateway could not check the token. Try again.', error)
  })
  if (account) return account
  throw stsError('InvalidIdentityToken', 'The task platform does not accept the web identity token.')
}

function readSeconds(text: string | undefined): number {
  if (text === undefined) return DEFAULT_SECONDS
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (seconds >= MIN_SECONDS && seconds <= MAX_SECONDS) return seconds
  throw stsError('ValidationError', `DurationSeconds must be a whole number from ${MIN_SECONDS} to ${MAX_SECONDS}.`)
}

function readPolicy(
  text: string | undefined,
  { policyProblem }: StsParts,
): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined
  const document = parsed(text)
  const problem = policyProblem(document)
  if (problem !== undefined) throw stsError('MalformedPolicyDocument', problem)
  return document as Readonly<Record<string, unknown>>
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw stsError('MalformedPolicyDocument', 'The policy is not valid JSON.')
  }
}

function tooLarge(hasPolicy: boolean): S3Error {
  return hasPolicy
    ? stsError('PackedPolicyTooLarge', 'The policy and the web identity token are too large for a session token.')
    : stsError('ValidationError', 'The web identity token is too large for a session token.')
}
