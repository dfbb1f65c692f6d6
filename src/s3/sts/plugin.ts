import { networkOf } from '../../../common/cidr.js'
import { ClientRate } from '../../../common/client-rate.js'
import { S3Error } from '../../../common/errors/s3-error.js'
import { hasLoneSurrogate, parseJson, repeatedName } from '../../../common/json.js'
import type { CacheUse } from '../../../common/metrics.js'
import { element } from '../../../common/xml.js'
import type { Context } from '../../api/context.js'
import type { Credentials, GatewayAccount } from '../../api/identity.js'
import type { Plugin } from '../../api/plugin.js'
import type { Reply, S3Request } from '../../api/request.js'
import type { State } from '../../api/state.js'
import { isStsCall } from '../../auth/authenticate.js'
import { canonicalId } from '../../auth/credentials.js'
import type { Sessions } from '../../auth/signer.js'
import type { GatewayPool } from '../../gateway/account/create-gateway.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { AcceptedTokens } from './accepted-tokens.js'
import { assumedRoleArn, credentialsElement, MAX_TOKEN, stsReply, tooLarge } from './answers.js'
import { Parameters, readIdentityToken, stsError } from './parameters.js'
import { Principals, principalOf } from './principals.js'
import { sessionKey } from './sealing.js'
import { SealedSessions } from './sessions.js'
import { assumeKeyPair, listRoles, type WebIdentityDeps } from './web-identity.js'

export interface StsDeps extends WebIdentityDeps {
  readonly principals: Pick<Principals, 'keep'>
  readonly acceptedTokens: Pick<AcceptedTokens, 'accountOf'>
  /** The account of the server itself. */
  readonly ownAccount: () => Promise<GatewayAccount>
  /** Returns what is wrong with a session policy; undefined if nothing is. */
  readonly policyProblem: (document: unknown) => string | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const VERSION = '2011-06-15'
const MAX_BODY_BYTES = 64 * 1024

/** The security token service on the port of S3: the body names the action, and all are one operation of the table. */
export function stsPlugin(deps: StsDeps): Plugin {
  return Object.freeze({ name: 'sts', operations: [securityTokenService(deps)] })
}

function securityTokenService(deps: StsDeps) {
  return defineOperation({
    name: 'SecurityTokenService',
    source: 'https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html',
    partly:
      'Actions: AssumeRoleWithWebIdentity with a token of the task platform or of an OpenID Connect issuer, ListWebIdentityRoles, GetSessionToken for a key pair, and GetCallerIdentity.',
    access: 'public',
    action: 'none',
    on: { method: 'POST', resource: 'service' },
    async run(request, context) {
      if (!isStsCall(request)) {
        throw new S3Error('MethodNotAllowed', {
          fields: { Method: request.method, ResourceType: 'SERVICE' },
          headers: { allow: 'GET' },
        })
      }
      const { bytes } = await request.body.collect(MAX_BODY_BYTES)
      const parameters = new Parameters(bytes.toString('utf8'))
      const action = parameters.get('Action')
      if (action === undefined) throw stsError('MissingAction', 'The request has no parameter Action.')
      if (parameters.get('Version') === VERSION) {
        if (action === ACTION) return assumeRole(request, parameters, deps)
        if (action === 'ListWebIdentityRoles') return listRoles(request, parameters, deps)
        if (action === 'GetSessionToken') return sessionToken(request.id, parameters, context, deps)
        if (action === 'GetCallerIdentity') {
          parameters.refuseOthers(['Action', 'Version'])
          return callerIdentity(request.id, context)
        }
      }
      throw stsError(
        'InvalidAction',
        `This server has ${ACTION}, ListWebIdentityRoles, GetSessionToken and GetCallerIdentity of version ${VERSION}.`,
      )
    },
  })
}

const ACTION = 'AssumeRoleWithWebIdentity'
const NAMES = ['RoleArn', 'RoleSessionName', 'WebIdentityToken', 'ProviderId', 'Policy', 'DurationSeconds']

/** Bounds of DurationSeconds, and what it is when absent. */
interface Duration {
  readonly min: number
  readonly max: number
  readonly byDefault: number
}

const ROLE_SECONDS: Duration = { min: 900, max: 43_200, byDefault: 3600 }
const KEY_PAIR_SECONDS: Duration = { min: 900, max: 129_600, byDefault: 43_200 }

/**
 * Issues temporary credentials for the gateway account of a user of the task platform, whose token this exchanges at
 * the gateway. The request needs no signature.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
 */
async function assumeRole(
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  parameters: Parameters,
  deps: StsDeps,
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
  const seconds = readSeconds(parameters, ROLE_SECONDS)
  const policy = readPolicy(parameters, deps)
  const claims = readIdentityToken(identityToken)
  const now = deps.now()
  if (claims.issuer !== undefined && claims.issuer === deps.webIdentities?.issuer) {
    const expires = wholeSecond(now + seconds * 1000)
    return assumeKeyPair(request, { role, identityToken, policy, expires }, deps)
  }
  const ending = claims.expires ?? Number.POSITIVE_INFINITY
  if (ending <= now) throw stsError('ExpiredTokenException', 'The web identity token has expired: sign in again.')
  const account = await deps.limits.run(networkOf(request.remoteAddress), () => exchange(deps, identityToken))
  const isOwn = (await deps.ownAccount()).accessKey === account.accessKey
  const expires = wholeSecond(Math.min(now + seconds * 1000, ending))
  const issued = await deps.sessions.issue({ account, identityToken, name, role, policy, expires })
  const size = issued.sessionToken.length
  if (size > MAX_TOKEN) throw tooLarge(policy !== undefined)
  await deps.principals.keep(account, isOwn)
  const identity = { accessKeyId: principalOf(account), ...(!isOwn && { account }) }
  const content = [
    element('SubjectFromWebIdentityToken', claims.subject),
    element('Audience', claims.audience),
    '<AssumedRoleUser>',
    element('Arn', assumedRoleArn(canonicalId(identity), { role, name })),
    element('AssumedRoleId', `${identity.accessKeyId}:${name}`),
    '</AssumedRoleUser>',
    credentialsElement(issued, expires),
    element('Provider', claims.issuer),
    policy && element('PackedPolicySize', Math.ceil((100 * size) / MAX_TOKEN)),
  ]
  return stsReply(ACTION, content.join(''), request.id)
}

/**
 * Issues temporary credentials for the key pair that has signed the request. They have its rights, and no more than
 * `Policy` allows, which AWS does not have here.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_GetSessionToken.html
 */
async function sessionToken(
  requestId: string,
  parameters: Parameters,
  { caller }: Pick<Context, 'caller'>,
  deps: StsDeps,
): Promise<Reply> {
  if (!caller) throw missingAuthentication()
  parameters.refuseOthers(['Action', 'Version', 'DurationSeconds', 'Policy'])
  const { identity, payload, presigned, signatureVersion } = caller
  if (identity.session) throw stsError('AccessDenied', 'Cannot call GetSessionToken with session credentials')
  const covered = payload.kind === 'signed' || payload.kind === 'buffered'
  if (!covered || presigned || signatureVersion !== 'AWS4-HMAC-SHA256') {
    throw stsError('AccessDenied', 'GetSessionToken needs a header signature of version 4 that covers the body.')
  }
  const seconds = readSeconds(parameters, KEY_PAIR_SECONDS)
  const policy = readPolicy(parameters, deps)
  const expires = wholeSecond(deps.now() + seconds * 1000)
  const issued = await deps.sessions.issue({ keyPair: identity, policy, expires })
  if (issued.sessionToken.length > MAX_TOKEN) throw tooLarge(true)
  return stsReply('GetSessionToken', credentialsElement(issued, expires), requestId)
}

/** The end of a session, as answers name it: the session must not end before that. */
function wholeSecond(time: number): number {
  return Math.floor(time / 1000) * 1000
}

async function exchange({ acceptedTokens }: StsDeps, identityToken: string): Promise<GatewayAccount> {
  const account = await acceptedTokens.accountOf(identityToken).catch((error: unknown) => {
    if (error instanceof S3Error && error.code === 'NotImplemented') throw error
    throw stsError('IDPCommunicationError', 'The object gateway could not check the token. Try again.', error)
  })
  if (account) return account
  throw stsError('InvalidIdentityToken', 'The task platform does not accept the web identity token.')
}

function readSeconds(parameters: Parameters, { min, max, byDefault }: Duration): number {
  const text = parameters.get('DurationSeconds')
  if (text === undefined) return byDefault
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (seconds >= min && seconds <= max) return seconds
  throw stsError('ValidationError', `DurationSeconds must be a whole number from ${min} to ${max}.`)
}

function readPolicy(parameters: Parameters, { policyProblem }: StsDeps): Readonly<Record<string, unknown>> | undefined {
  const text = parameters.text('Policy', { min: 1, max: 2048 })
  if (text === undefined) return undefined
  const document = parseJson(text)
  if (document === undefined) throw stsError('MalformedPolicyDocument', 'The policy is not valid JSON.')
  if (hasLoneSurrogate(text))
    throw stsError('MalformedPolicyDocument', 'The policy has an escape that is no Unicode character.')
  const name = repeatedName(text)
  const problem = name === undefined ? policyProblem(document) : `${JSON.stringify(name)} occurs twice in one object.`
  if (problem !== undefined) throw stsError('MalformedPolicyDocument', problem)
  return document as Readonly<Record<string, unknown>>
}

/**
 * Says who has signed the request. The account is the canonical id, as ListBuckets and policies name it.
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
 */
function callerIdentity(requestId: string, { caller }: Pick<Context, 'caller'>): Reply {
  if (!caller) throw missingAuthentication()
  const { identity } = caller
  const account = canonicalId(identity)
  const { session: { name = '', role } = {}, accessKeyId } = identity
  const content = [
    element('Arn', role ? assumedRoleArn(account, { role, name }) : `arn:aws:iam::${account}:user/${accessKeyId}`),
    element('UserId', role ? `${accessKeyId}:${name}` : accessKeyId),
    element('Account', account),
  ]
  return stsReply('GetCallerIdentity', content.join(''), requestId)
}

function missingAuthentication(): S3Error {
  return stsError('MissingAuthenticationToken', 'Request is missing Authentication Token')
}

/** Each exchange of a token of the platform is a call to the gateway. */
const EXCHANGES = { burst: 60, perSecond: 1, concurrency: { total: 32, perClient: 8 } }

interface OpenStsOptions extends Pick<StsDeps, 'ownAccount' | 'now' | 'policyProblem' | 'webIdentities'> {
  readonly state: Pick<State, 'records'>
  readonly pool: Pick<GatewayPool, 'keyPairOf'>
  /** Key pairs that are not temporary. */
  readonly credentials: Credentials
  /** Counts looks for tokens in the cache. */
  readonly tokenUse?: CacheUse
}

export interface OpenedSts {
  readonly parts: StsDeps
  readonly sessions: Sessions
  /** Finds key pairs, and the principals of sessions by their names. */
  readonly credentials: Credentials
}

/** Opens the security token service on a gateway and a state. Reads nothing before the first use. */
export function openSts({ state, pool, credentials, tokenUse, ...given }: OpenStsOptions): OpenedSts {
  const clock = () => performance.now()
  const key = sessionKey(state)
  const acceptedTokens = new AcceptedTokens({ ask: (token) => pool.keyPairOf(token), clock, use: tokenUse })
  const principals = new Principals(state, key, given.ownAccount)
  const sessions = new SealedSessions({ key, acceptedTokens, credentials, ...given })
  const limits = new ClientRate(EXCHANGES, () => stsError('Throttling', 'Rate exceeded'), clock)
  const parts: StsDeps = { sessions, principals, acceptedTokens, limits, keyPairs: credentials, ...given }
  return { parts, sessions, credentials: async (name) => (await credentials(name)) ?? principals.find(name) }
}
