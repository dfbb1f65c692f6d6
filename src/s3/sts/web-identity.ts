import { createHash } from 'node:crypto'
import { networkOf } from '../../../common/cidr.js'
import type { ClientRate } from '../../../common/client-rate.js'
import { element } from '../../../common/xml.js'
import type { Credentials, WebIdentities } from '../../api/identity.js'
import type { Reply, S3Request } from '../../api/request.js'
import { canonicalId } from '../../auth/credentials.js'
import { assumedRoleArn, credentialsElement, MAX_TOKEN, stsReply, tooLarge } from './answers.js'
import { type Parameters, stsError } from './parameters.js'
import type { SealedSessions } from './sessions.js'

export interface WebIdentityDeps {
  readonly sessions: Pick<SealedSessions, 'issue'>
  readonly limits: Pick<ClientRate, 'run'>
  /** Undefined: the server accepts the tokens of no issuer. */
  readonly webIdentities: WebIdentities | undefined
  /** Key pairs that are not temporary. */
  readonly keyPairs: Credentials
}

/** Characters of the hash in the name of a session. */
const HASH_LENGTH = 16

interface AssumedKeyPair {
  readonly role: string
  readonly identityToken: string
  readonly policy: Readonly<Record<string, unknown>> | undefined
  /** Milliseconds since 1970. */
  readonly expires: number
}

/**
 * Issues temporary credentials with the rights of the key pair that the role names, for the holder of a token of the
 * issuer. They end before `expires` if the key pair is removed or gets another secret, and may outlive the token.
 */
export async function assumeKeyPair(
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  { role, identityToken, policy, expires }: AssumedKeyPair,
  deps: WebIdentityDeps,
): Promise<Reply> {
  const { subject, audience, keys } = await verified(request, identityToken, deps)
  const wanted = role.slice(role.lastIndexOf('/') + 1)
  const keyPair = keys.find(({ accessKeyId }) => accessKeyId === wanted)
  if (!keyPair) {
    const roles = keys.map(({ accessKeyId }) => accessKeyId).join(', ')
    throw stsError('AccessDenied', `The token gives no role of this name. Its roles: ${roles || 'none'}.`)
  }
  // Its own word would let a holder of a token appear as another one in the audit log.
  const name = sessionNameOf(subject)
  const issued = await deps.sessions.issue({ keyPair, policy, expires, web: { name, role } })
  if (issued.sessionToken.length > MAX_TOKEN) throw tooLarge(true)
  const content = [
    element('SubjectFromWebIdentityToken', subject.slice(0, 255)),
    element('Audience', audience),
    '<AssumedRoleUser>',
    element('Arn', assumedRoleArn(canonicalId(keyPair), { role, name })),
    element('AssumedRoleId', `${keyPair.accessKeyId}:${name}`),
    '</AssumedRoleUser>',
    credentialsElement(issued, expires),
    element('Provider', deps.webIdentities?.issuer),
  ]
  return stsReply('AssumeRoleWithWebIdentity', content.join(''), request.id)
}

/** The subject itself where it is a name of a session; any other is shortened, and no two have the same name. */
function sessionNameOf(subject: string): string {
  if (/^[\w+=,.@-]{2,64}$/.test(subject)) return subject
  const hash = createHash('sha256').update(subject).digest('hex').slice(0, HASH_LENGTH)
  return `${subject.replace(/[^\w+=,.@-]/g, '-').slice(0, 63 - HASH_LENGTH)}-${hash}`
}

/** Lists the roles that a token of the issuer gives, which AWS has no call for. The request needs no signature. */
export async function listRoles(
  request: Pick<S3Request, 'id' | 'remoteAddress'>,
  parameters: Parameters,
  deps: WebIdentityDeps,
): Promise<Reply> {
  parameters.refuseOthers(['Action', 'Version', 'WebIdentityToken'])
  const token = parameters.required('WebIdentityToken', { min: 4, max: 20_000 })
  const { subject, keys } = await verified(request, token, deps)
  const roles = keys.map(({ accessKeyId }) => {
    const arn = `arn:aws:iam::000000000000:role/${accessKeyId}`
    return `<member>${element('RoleName', accessKeyId)}${element('Arn', arn)}</member>`
  })
  const content = `${element('SubjectFromWebIdentityToken', subject.slice(0, 255))}<Roles>${roles.join('')}</Roles>`
  return stsReply('ListWebIdentityRoles', content, request.id)
}

/** What a token of the issuer gives its holder, with the key pairs that there are. Throws an error of STS. */
async function verified({ remoteAddress }: Pick<S3Request, 'remoteAddress'>, token: string, deps: WebIdentityDeps) {
  const { webIdentities, limits, keyPairs } = deps
  if (webIdentities === undefined)
    throw stsError('InvalidIdentityToken', 'This server accepts the tokens of no issuer.')
  const answer = await limits.run(networkOf(remoteAddress), () => webIdentities.verify(token))
  if ('problem' in answer) throw stsError(REFUSALS[answer.kind], answer.problem)
  const found = await Promise.all(answer.keys.map((id) => keyPairs(id)))
  return { ...answer, keys: found.filter((keyPair) => keyPair !== undefined) }
}

const REFUSALS = {
  invalid: 'InvalidIdentityToken',
  expired: 'ExpiredTokenException',
  later: 'IDPCommunicationError',
} as const
